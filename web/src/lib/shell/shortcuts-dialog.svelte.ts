/** Whether the list of shortcuts is open. */
class ShortcutsDialog {
	open = $state(false);
}

export const shortcutsDialog = new ShortcutsDialog();
