/** Width and fold of the Home panel, remembered per organization in this browser. */
export const PANEL_MIN = 280;
export const PANEL_MAX = 480;

interface Stored {
	width: number;
	folded: boolean;
}

const storageKey = (orgId: string) => `tale.panel.${orgId}`;

function stored(orgId: string): Stored {
	try {
		const value = JSON.parse(localStorage.getItem(storageKey(orgId)) ?? '{}') as Partial<Stored>;
		return { width: clamp(Number(value.width) || PANEL_MIN), folded: value.folded === true };
	} catch {
		return { width: PANEL_MIN, folded: false };
	}
}

function clamp(width: number): number {
	return Math.min(PANEL_MAX, Math.max(PANEL_MIN, Math.round(width)));
}

class HomePanelState {
	width = $state(PANEL_MIN);
	folded = $state(false);
	/** Whether the page on screen has a panel to fold. */
	present = $state(false);
	#orgId: string | undefined;

	/** Loads what was remembered for an organization. */
	open(orgId: string): void {
		if (this.#orgId === orgId) return;
		this.#orgId = orgId;
		({ width: this.width, folded: this.folded } = stored(orgId));
	}

	resize(width: number): void {
		this.width = clamp(width);
		this.#save();
	}

	toggle(): void {
		this.folded = !this.folded;
		this.#save();
	}

	#save(): void {
		if (!this.#orgId) return;
		try {
			localStorage.setItem(storageKey(this.#orgId), JSON.stringify({ width: this.width, folded: this.folded }));
		} catch {
			// Without storage the width lasts until the tab is closed.
		}
	}
}

export const homePanel = new HomePanelState();
