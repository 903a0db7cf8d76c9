// The official OpenAI library for Node against the model endpoints: only address, key and model differ.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

// From the directory that the libraries were fetched into.
const { OpenAI } = createRequire(`${process.cwd()}/`)('openai');

const client = new OpenAI({ baseURL: `${process.env.TALE}/api/v1/openai`, apiKey: process.env.KEY });
const say = (model, content, more = {}) =>
	client.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });
const tools = [
	{
		type: 'function',
		function: {
			name: 'weather',
			parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
		}
	}
];

for (const model of ['open/able', 'claude/able']) {
	const whole = await say(model, 'hello');
	assert.equal(whole.choices[0].message.content, 'Grüße 🦀 to you');
	assert.equal(whole.usage.total_tokens, 30);
	let text = '';
	for await (const chunk of await say(model, 'hello', { stream: true })) {
		assert.equal(chunk.model, model);
		text += chunk.choices[0]?.delta.content ?? '';
	}
	assert.equal(text, 'Grüße 🦀 to you');
	const runner = client.chat.completions.stream({ model, messages: [{ role: 'user', content: 'tools' }], tools });
	const final = await runner.finalChatCompletion();
	assert.deepEqual(
		final.choices[0].message.tool_calls.map((call) => JSON.parse(call.function.arguments).city),
		['Zürich', 'Genève']
	);
	assert.equal((await say(model, 'overloaded once')).choices[0].message.content, 'At last');
	await assert.rejects(say(model, 'refuse'), (error) => error instanceof OpenAI.BadRequestError && error.code === 'MODEL_API_UPSTREAM_ERROR');
	await assert.rejects(
		(async () => {
			for await (const _ of await say(model, 'break off', { stream: true }));
		})(),
		/Overloaded/
	);
	// A reader that stops early is no failure of anybody.
	const stream = await say(model, 'hello', { stream: true });
	for await (const _ of stream) break;
}
await assert.rejects(say('open/nothing', 'hello'), (error) => error.status === 404 && error.code === 'MODEL_API_MODEL_UNKNOWN');
console.log('ok');
