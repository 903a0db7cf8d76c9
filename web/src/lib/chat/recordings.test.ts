import { describe, expect, it } from 'vitest';
import { isRecording, partRecordings } from './recordings.ts';

describe('recordings', () => {
	it('are told by the ending of their name', () => {
		for (const name of ['Call.MP3', 'Interview Müller.m4a', 'screen.webm', 'a.b.mov'])
			expect(isRecording(name)).toBe(true);
		for (const name of ['notes.md', 'mp3', 'song.mp3.txt', 'photo.png']) expect(isRecording(name)).toBe(false);
	});

	it('leave the rest of a selection in its order', () => {
		const files = ['a.txt', 'b.wav', 'c.pdf'].map((name) => new File([''], name));
		const { recordings, others } = partRecordings(files);
		expect(recordings.map(({ name }) => name)).toEqual(['b.wav']);
		expect(others.map(({ name }) => name)).toEqual(['a.txt', 'c.pdf']);
	});
});
