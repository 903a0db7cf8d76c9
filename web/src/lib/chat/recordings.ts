/** Which files are recordings: their text is a transcript. The server decides by the same endings. */
const ENDINGS = /\.(mp3|mpga|m4a|wav|ogg|oga|opus|mp4|m4v|mov|mkv|webm|avi|mpeg|mpg|3gp)$/i;

export const isRecording = (name: string): boolean => ENDINGS.test(name);

/** Recordings apart from the other files of a selection, in their order. */
export function partRecordings(files: Iterable<File>): { recordings: File[]; others: File[] } {
	const recordings: File[] = [];
	const others: File[] = [];
	for (const file of files) (isRecording(file.name) ? recordings : others).push(file);
	return { recordings, others };
}
