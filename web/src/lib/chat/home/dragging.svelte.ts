/**
 * A chat carried by the pointer. Only the Archived drawer takes it; dropped anywhere else it stays as it was. The same can
 * be done from the row's menu.
 */
const KIND = 'application/x-tale-chat';

class Dragging {
	/** The chat that is carried; nothing while none is. */
	id = $state<string | null>(null);

	start(event: DragEvent, id: string): void {
		event.dataTransfer?.setData(KIND, id);
		if (event.dataTransfer) event.dataTransfer.effectAllowed = 'move';
		this.id = id;
	}

	end(): void {
		this.id = null;
	}

	/** Whether an event of a drag carries a chat. */
	carries(event: DragEvent): boolean {
		return event.dataTransfer?.types.includes(KIND) ?? false;
	}

	/** The chat that was dropped. */
	dropped(event: DragEvent): string {
		return event.dataTransfer?.getData(KIND) ?? '';
	}
}

export const dragging = new Dragging();
