/**
 * Files staged for the next message of a conversation. They belong to the conversation they were staged
 * in and stay there while the person looks at others; sending or removing empties the stage.
 */
import { api, send } from '#lib/api/client.ts';
import { toProblem } from '#lib/api/problem.ts';
import { limitText, uploadDoors } from '#lib/documents/doors.ts';
import { MAX_FILE_BYTES, Upload, UploadQueue } from '#lib/documents/uploads.svelte.ts';
import { formatNumber } from '#lib/i18n/format.ts';
import { m } from '#lib/paraglide/messages.js';
import { base } from '#lib/shell/paths.ts';
import { toasts } from '#lib/ui/toasts.svelte.ts';
import type { AttachmentPart, ParkedFile } from './types.ts';

const MAX_FILES = 10;
const MAX_BATCH_BYTES = 2 * MAX_FILE_BYTES;
/** Pause between two looks at a file that is being processed. */
const POLL_MS = 900;

export type ChipState = 'uploading' | 'processing' | 'ready' | 'failed';

export class Chip {
	readonly upload: Upload<AttachmentPart>;
	/** Address of a picture's thumbnail. */
	readonly preview: string | null;
	processing: 'processing' | 'ready' | 'failed' | null = $state(null);
	error: string | null = $state(null);
	/** Reading the file again may help. */
	canRetry = $state(true);

	constructor(upload: Upload<AttachmentPart>, preview?: string | null) {
		this.upload = upload;
		const local = () => (/^image\//.test(upload.file.type) ? URL.createObjectURL(upload.file) : null);
		this.preview = preview === undefined ? local() : preview;
	}

	/** A file that is on the server already, as it came back with a message that was not sent. */
	static stored(orgId: string, file: ParkedFile): Chip {
		const upload = new Upload<AttachmentPart>(
			`stored-${file.fileId}`,
			new File([], file.name, { type: file.mediaType })
		);
		upload.phase = 'done';
		upload.result = {
			type: 'attachment',
			name: file.name,
			mediaType: file.mediaType,
			fileId: file.fileId,
			sizeBytes: file.sizeBytes
		};
		const chip = new Chip(upload, pictureOf(orgId, file));
		chip.take(file);
		return chip;
	}

	/** How far the server is with it. */
	take(status: ParkedFile): void {
		this.processing = status.state;
		this.error = status.error ?? null;
		this.canRetry = status.canRetry ?? false;
	}

	/** Bytes. */
	get size(): number {
		return this.upload.result?.sizeBytes ?? this.upload.file.size;
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
		let bytes = this.chips.reduce((sum, chip) => sum + chip.size, 0);
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
		void this.#readAgain(chip, fileId);
	}

	async #readAgain(chip: Chip, fileId: string): Promise<void> {
		try {
			const params = { path: { fileId }, query: { orgId: this.#orgId } };
			chip.take(await send(api.POST('/api/app/chat/attachments/{fileId}/retry', { params })));
		} catch (error) {
			chip.processing = 'failed';
			toasts.problem(m.chat_file_retry_failed(), toProblem(error));
			return;
		}
		await this.#watch(chip, fileId);
	}

	clear(): void {
		for (const chip of this.chips) this.remove(chip);
		this.#pasted = 0;
	}

	/** Empties the stage for a message that goes; [`Stage.put`] brings the chips back. */
	lift(): Chip[] {
		const chips = this.chips;
		this.chips = [];
		return chips;
	}

	/** Stages chips that a message left behind. */
	put(chips: readonly Chip[]): void {
		const held = this.chips.map((chip) => chip.upload.result?.fileId);
		const back = chips.filter((chip) => !held.includes(chip.upload.result?.fileId));
		this.chips = [...back, ...this.chips];
		for (const chip of back) {
			const fileId = chip.upload.result?.fileId;
			if (fileId && chip.state === 'processing') void this.#watch(chip, fileId);
		}
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
				chip.take(status);
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

/** Where the picture of a stored file is shown from; nothing for other files. */
export function pictureOf(orgId: string, file: { fileId: string; mediaType: string }): string | null {
	if (!/^image\/(png|jpeg|gif|webp)$/.test(file.mediaType)) return null;
	return `${base}/api/app/files/${encodeURIComponent(file.fileId)}/content?orgId=${encodeURIComponent(orgId)}`;
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
