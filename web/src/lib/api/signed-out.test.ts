import { expect, test, vi } from 'vitest';

vi.mock('$app/paths', () => ({ resolve: (path: string) => path }));
const { ApiProblem } = await import('./problem.ts');
const { onSignedOut, watchSession } = await import('./signed-out.ts');

test('requests that are refused together end the session once, and a later one again', async () => {
	let arrive = () => {};
	const listener = vi.fn(() => new Promise<void>((resolve) => (arrive = resolve)));
	onSignedOut(listener);
	const refusal = new ApiProblem(401, 'UNAUTHORIZED', 'You are signed out.');
	watchSession(refusal);
	watchSession(refusal);
	expect(listener).toHaveBeenCalledTimes(1);
	arrive();
	await vi.waitFor(() => {
		watchSession(refusal);
		expect(listener).toHaveBeenCalledTimes(2);
	});
});
