/** Programs that call a model through the endpoints, complete but for the key. */

export const EXAMPLES = ['openai-python', 'openai-node', 'anthropic-python', 'curl'] as const;
export type Example = (typeof EXAMPLES)[number];

/** What each is called; names of libraries and programs are the same in every language. */
export const EXAMPLE_LABELS: Record<Example, string> = {
	'openai-python': 'OpenAI · Python',
	'openai-node': 'OpenAI · Node',
	'anthropic-python': 'Anthropic · Python',
	curl: 'curl'
};

interface Place {
	/** The address of `/api/v1`, without a slash at its end. */
	api: string;
	/** The organization's slug. */
	slug: string;
	model: string;
}

/** The example, for a key in the environment variable `TALE_API_KEY`. */
export function example(kind: Example, { api, slug, model }: Place): string {
	switch (kind) {
		case 'openai-python':
			return `import os
from openai import OpenAI

client = OpenAI(
    base_url="${api}/openai",
    api_key=os.environ["TALE_API_KEY"],
    default_headers={"X-Organization-Slug": "${slug}"},
)
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`;
		case 'openai-node':
			return `import OpenAI from 'openai';

const client = new OpenAI({
  baseURL: '${api}/openai',
  apiKey: process.env.TALE_API_KEY,
  defaultHeaders: { 'X-Organization-Slug': '${slug}' }
});
const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }]
});
console.log(answer.choices[0].message.content);`;
		case 'anthropic-python':
			return `import os
from anthropic import Anthropic

client = Anthropic(
    base_url="${api}/anthropic",
    auth_token=os.environ["TALE_API_KEY"],
    default_headers={"X-Organization-Slug": "${slug}"},
)
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content[0].text)`;
		case 'curl':
			return `curl ${api}/openai/chat/completions \\
  -H "Authorization: Bearer $TALE_API_KEY" \\
  -H "X-Organization-Slug: ${slug}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`;
	}
}
