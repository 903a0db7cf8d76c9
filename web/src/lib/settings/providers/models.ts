/** A model somebody typed: what can be assumed until they say otherwise. */
import type { Model } from '#lib/api/types.ts';

/** Context window assumed for a model whose provider does not tell, in tokens. */
const CONTEXT_WINDOW = 128_000;

export function typedModel(id: string): Model {
	const embedding = /embed|bge|e5-|gte-/i.test(id);
	const hearing = /whisper|transcri/i.test(id);
	return {
		id,
		contextWindow: CONTEXT_WINDOW,
		purposes: [hearing ? 'transcription' : embedding ? 'embedding' : 'chat'],
		capabilities: { tools: !embedding && !hearing, vision: false, reasoning: false }
	};
}
