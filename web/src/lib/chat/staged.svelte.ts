/**
 * Files staged for the next message of a conversation. They belong to the conversation they were staged
 * in and stay there while the person looks at others; sending or removing empties the stage.
 */
import { api, send } from '#lib/api/client.ts';
import { limitText, uploadDoors } from '#lib/documents/doors.ts';
import { MAX_FILE_BYTES, UploadQueue, type Upload } from '#lib/documents/uploads.svelte.ts';
import { formatNumber } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import type { AttachmentPart } from './types.ts';

const MAX_FILES = 10;
const MAX_BATCH_BYTES = 2 * MAX_FILE_BYTES;
/** Pause between two looks at a file that is being processed. */
const POLL_MS = 900;

export type ChipState = 'uploading' | 'processing' | 'ready' | 'failed';

export class Chip {
	readonly upload: Upload<AttachmentPart>;
	/** Local address of a picture's thumbnail. */
	readonly preview: string | null;
	processing: 'processing' | 'ready' | 'failed' | null = $state(null);
	error: string | null = $state(null);

	constructor(upload: Upload<AttachmentPart>) {
		this.upload = upload;
		this.preview = /^image\//.test(upload.file.type) ? URL.createObjectURL(upload.file) : null;
	}

	get state(): ChipState {
		if (this.upload.phase === 'failed') return 'failed';
		if (this.upload.phase !== 'done') return 'uploading';
		if (this.processing === 'failed') return 'failed';
		return this.processing === 'ready' ? 'ready' : 'processing';
	}
}

export class Stage {
	readonly #orgId: string;
	readonly #queue: UploadQueue<AttachmentPart>;
	chips: Chip[] = $state.raw([]);
	#pasted = 0;

	constructor(orgId: string) {
		this.#orgId = orgId;
		this.#queue = new UploadQueue(
			uploadDoors(orgId, 'chat', (ticket, file) => {
				const part: AttachmentPart = {
					type: 'attachment',
					name: file.name,
					mediaType: file.type,
					fileId: ticket.fileId,
					sizeBytes: file.size
				};
				const chip = this.chips.find((candidate) => candidate.upload.file === file);
				if (chip) {
					chip.processing = 'processing';
					void this.#watch(chip, ticket.fileId);
				}
				return Promise.resolve(part);
			})
		);
	}

	get uploading(): boolean {
		return this.chips.some((chip) => chip.state === 'uploading');
	}

	get processing(): boolean {
		return this.chips.some((chip) => chip.state === 'processing');
	}

	get failed(): boolean {
		return this.chips.some((chip) => chip.state === 'failed');
	}

	get pictures(): boolean {
		return this.chips.some((chip) => chip.preview !== null);
	}

	/** What a send carries. */
	get parts(): AttachmentPart[] {
		return this.chips.flatMap((chip) => (chip.upload.result ? [chip.upload.result] : []));
	}

	/** Stages files within the limits and reports what stays outside. */
	add(files: Iterable<File>): void {
		const accepted: File[] = [];
		let over = 0;
		let bytes = this.chips.reduce((sum, chip) => sum + chip.upload.file.size, 0);
		for (const file of files) {
			if ([...this.chips.map((chip) => chip.upload.file), ...accepted].some((other) => same(other, file))) {
				toasts.show({ kind: 'info', text: m.chat_duplicate_file(), detail: file.name });
			} else if (file.size > MAX_FILE_BYTES) {
				toasts.show({
					kind: 'error',
					text: m.chat_file_too_large({ name: file.name, limit: limitText(MAX_FILE_BYTES) })
				});
			} else if (this.chips.length + accepted.length >= MAX_FILES) {
				over++;
			} else if (bytes + file.size > MAX_BATCH_BYTES) {
				toasts.show({
					kind: 'error',
					text: m.chat_batch_too_large(),
					detail: m.chat_batch_too_large_detail({ name: file.name, limit: limitText(MAX_BATCH_BYTES) })
				});
			} else {
				bytes += file.size;
				accepted.push(file);
			}
		}
		if (over > 0) {
			toasts.show({
				kind: 'error',
				text: m.chat_too_many_files(),
				detail: m.chat_too_many_files_detail({ count: formatNumber(over), limit: formatNumber(MAX_FILES) })
			});
		}
		this.chips = [...this.chips, ...this.#queue.add(accepted).map((upload) => new Chip(upload))];
	}

	/** Stages pasted pictures under names of their own. */
	paste(files: File[]): void {
		this.add(
			files.map((file) => {
				const extension = file.type.split('/')[1]?.replace('jpeg', 'jpg') ?? 'png';
				return new File([file], `pasted-image-${++this.#pasted}.${extension}`, { type: file.type });
			})
		);
	}

	remove(chip: Chip): void {
		this.#queue.remove(chip.upload.id);
		if (chip.preview) URL.revokeObjectURL(chip.preview);
		this.chips = this.chips.filter((other) => other !== chip);
	}

	retry(chip: Chip): void {
		if (chip.upload.phase === 'failed') return this.#queue.retry(chip.upload.id);
		const fileId = chip.upload.result?.fileId;
		if (!fileId) return;
		chip.processing = 'processing';
		void this.#watch(chip, fileId);
	}

	clear(): void {
		for (const chip of this.chips) this.remove(chip);
		this.#pasted = 0;
	}

	/** Follows the processing of one file until it is over or the chip is gone. */
	async #watch(chip: Chip, fileId: string): Promise<void> {
		for (let failures = 0; failures < 5;) {
			if (!this.chips.includes(chip)) return;
			try {
				const status = await send(
					api.GET('/api/app/chat/attachments/{fileId}', {
						params: { path: { fileId }, query: { orgId: this.#orgId } }
					})
				);
				failures = 0;
				chip.processing = status.state;
				chip.error = status.error ?? null;
				if (status.state !== 'processing') return;
			} catch {
				failures++;
			}
			await new Promise((resume) => setTimeout(resume, POLL_MS));
		}
		chip.processing = 'failed';
		chip.error = m.chat_file_unknown();
	}
}

function same(a: File, b: File): boolean {
	return a.name === b.name && a.size === b.size && a.lastModified === b.lastModified;
}

// eslint-disable-next-line svelte/prefer-svelte-reactivity -- a registry; what is reactive is in its values
const stages = new Map<string, Stage>();

/** The stage of a conversation; it outlives the page. */
export function stageOf(orgId: string, conversation: string): Stage {
	const key = `${orgId}/${conversation}`;
	let stage = stages.get(key);
	if (!stage) {
		stage = new Stage(orgId);
		stages.set(key, stage);
	}
	return stage;
}
