/** Which model a message goes to: the person's pick while it is usable, otherwise Auto or the only one there is. */
import { m } from '#lib/paraglide/messages.js';
import type { Pick } from './rows.ts';
import type { ChatModel, Composer, Effort } from './types.ts';

export const AUTO = 'auto';

export const EFFORTS: readonly (Effort | null)[] = [null, 'low', 'medium', 'high', 'extra', 'max'];

export function effortLabel(effort: Effort | null): string {
	switch (effort) {
		case 'low':
			return m.chat_effort_low();
		case 'medium':
			return m.chat_effort_medium();
		case 'high':
			return m.chat_effort_high();
		case 'extra':
			return m.chat_effort_extra();
		case 'max':
			return m.chat_effort_max();
		default:
			return m.chat_effort_default();
	}
}

export const nameOf = (model: ChatModel): string => model.displayName || model.id;

/** The model that is pinned, or nothing on Auto and without models. */
export function pinned(composer: Composer | undefined): ChatModel | null {
	const models = composer?.models ?? [];
	if (models.length === 1) return models[0] ?? null;
	const pick = composer?.pick;
	if (!pick || pick.model === AUTO) return null;
	return (
		models.find(
			(model) => model.id === pick.model && (!pick.providerSlug || model.providerSlug === pick.providerSlug)
		) ?? null
	);
}

/** Whether two picks are the same; nothing is Auto. */
export function sameModel(a: ChatModel | null, b: ChatModel | null): boolean {
	return a === b || (a !== null && b !== null && a.id === b.id && a.providerSlug === b.providerSlug);
}

/** What a send names. */
export function pickFor(composer: Composer | undefined): Pick {
	const model = pinned(composer);
	return model ? { model: model.id, providerSlug: model.providerSlug } : { model: AUTO, providerSlug: null };
}

/** Models under the display name of their provider, in the order the server gives. */
export function byProvider(models: readonly ChatModel[], search: string): { provider: string; models: ChatModel[] }[] {
	const words = search.trim().toLowerCase().split(/\s+/).filter(Boolean);
	const groups = new Map<string, ChatModel[]>();
	for (const model of models) {
		const text = `${nameOf(model)} ${model.id} ${model.providerName}`.toLowerCase();
		if (!words.every((word) => text.includes(word))) continue;
		const group = groups.get(model.providerName);
		if (group) group.push(model);
		else groups.set(model.providerName, [model]);
	}
	return [...groups].map(([provider, list]) => ({ provider, models: list }));
}

/** Names the subscriptions, which serve no chat, for whoever looks for their models; nothing without any. */
export function leftOut(composer: Composer | undefined): string {
	const names = (composer?.subscriptions ?? []).map(({ name, providerName }) => `${name} (${providerName})`);
	return names.length > 0 ? m.chat_subscriptions_left_out({ names: names.join(', ') }) : '';
}
