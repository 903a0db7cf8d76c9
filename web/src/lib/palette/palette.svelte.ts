/** Whether the command palette is open. */
class PaletteState {
	open = $state(false);

	show(): void {
		this.open = true;
	}
	toggle(): void {
		this.open = !this.open;
	}
}

export const palette = new PaletteState();
