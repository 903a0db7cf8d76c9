/**
 * Opening and closing of something that floats beside a button: light dismissal, Escape and the way back of focus are the
 * browser's own (`popover="auto"`), so nested ones close from the top.
 */
import { createAttachmentKey } from 'svelte/attachments';
import { float, type Placement } from './float.ts';
import { tooltips } from './tooltips.svelte.ts';

interface Options {
	id: string;
	haspopup: 'menu' | 'dialog';
	placement: () => Placement;
	isOpen: () => boolean;
	setOpen: (open: boolean) => void;
	/** Called once it stands in its place; moves the focus inside. */
	onshown: (panel: HTMLElement, how: 'first' | 'last') => void;
}

export class Popup {
	#anchor: HTMLElement | undefined;
	#panel: HTMLElement | undefined;
	#stop: (() => void) | undefined;
	#wasOpen = false;

	constructor(private readonly options: Options) {}

	/** Attributes for the button. */
	get trigger(): Record<string | symbol, unknown> {
		const { id, haspopup, isOpen } = this.options;
		return {
			'aria-haspopup': haspopup,
			'aria-expanded': isOpen(),
			'aria-controls': isOpen() ? id : undefined,
			// A press outside has closed it by the time of the click; without this the click would open it again.
			onpointerdowncapture: () => (this.#wasOpen = isOpen()),
			onclick: () => {
				const close = this.#wasOpen || isOpen();
				this.#wasOpen = false;
				if (close) this.hide();
				else this.show();
			},
			onkeydown: (event: KeyboardEvent) => {
				if (haspopup !== 'menu' || (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')) return;
				event.preventDefault();
				this.show(event.key === 'ArrowDown' ? 'first' : 'last');
			},
			[createAttachmentKey()]: (element: HTMLElement) => {
				this.#anchor = element;
			}
		};
	}

	/** Attachment of the panel; it is only rendered while open. */
	panel = (how: 'first' | 'last') => (panel: HTMLElement) => {
		this.#panel = panel;
		panel.showPopover();
		if (this.#anchor) this.#stop = float(panel, this.#anchor, this.options.placement());
		this.options.onshown(panel, how);
		const toggled = (event: Event) => {
			if ((event as ToggleEvent).newState === 'closed') this.options.setOpen(false);
		};
		panel.addEventListener('toggle', toggled);
		return () => {
			this.#stop?.();
			panel.removeEventListener('toggle', toggled);
			this.#panel = undefined;
		};
	};

	how: 'first' | 'last' = 'first';

	show(how: 'first' | 'last' = 'first'): void {
		tooltips.hide();
		this.how = how;
		this.options.setOpen(true);
	}

	/** Closes and gives the focus back to the button. */
	hide(): void {
		const inside = this.#panel?.contains(document.activeElement);
		if (this.#panel?.matches(':popover-open')) this.#panel.hidePopover();
		if (inside) this.#anchor?.focus();
		this.options.setOpen(false);
	}
}
