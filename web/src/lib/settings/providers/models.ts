/** A model somebody typed: what can be assumed until they say otherwise. */
import type { Model } from '#lib/api/types.ts';

/** Context window assumed for a model whose provider does not tell, in tokens. */
const CONTEXT_WINDOW = 128_000;

export function typedModel(id: string): Model {
	const embedding = /embed|bge|e5-|gte-/i.test(id);
	return {
		id,
		contextWindow: CONTEXT_WINDOW,
		purposes: [embedding ? 'embedding' : 'chat'],
		capabilities: { tools: !embedding, vision: false, reasoning: false }
	};
}
