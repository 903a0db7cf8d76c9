/** Passkeys of this browser: made, and used to log in. Loaded when somebody asks for one. */
import { api, send } from '#lib/api/client.ts';
import { ApiProblem } from '#lib/api/problem.ts';
import type { PasskeyCreationOptions, PasskeyRequestOptions } from '#lib/api/types.ts';

export type Keeping = 'any' | 'platform' | 'cross-platform';

/** The browser showed its dialog and got nothing: it was closed, or there is no fitting passkey. */
export const CANCELLED = 'PASSKEY_CANCELLED';
/** The device has a passkey of this account. */
export const THERE_ALREADY = 'PASSKEY_THERE_ALREADY';

function bytes(text: string): Uint8Array<ArrayBuffer> {
	const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
	return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

function text(buffer: ArrayBuffer): string {
	const plain = String.fromCharCode(...new Uint8Array(buffer));
	return btoa(plain).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const descriptors = (known: { id: string; transports: string[] }[]): PublicKeyCredentialDescriptor[] =>
	known.map(({ id, transports }) => ({
		type: 'public-key',
		id: bytes(id),
		transports: transports as AuthenticatorTransport[]
	}));

/** Waits for the person and the browser; says why there is nothing. */
async function asked(credential: Promise<Credential | null>): Promise<PublicKeyCredential> {
	try {
		const given = await credential;
		if (given instanceof PublicKeyCredential) return given;
	} catch (error) {
		const there = error instanceof DOMException && error.name === 'InvalidStateError';
		throw new ApiProblem(0, there ? THERE_ALREADY : CANCELLED, String(error));
	}
	throw new ApiProblem(0, CANCELLED, 'The browser gave no passkey.');
}

async function create(options: PasskeyCreationOptions, where: Keeping): Promise<PublicKeyCredential> {
	return asked(
		navigator.credentials.create({
			publicKey: {
				challenge: bytes(options.challenge),
				rp: { id: options.rpId, name: options.rpName },
				user: { id: bytes(options.userId), name: options.userName, displayName: options.userDisplayName },
				pubKeyCredParams: options.algorithms.map((alg) => ({ type: 'public-key', alg })),
				excludeCredentials: descriptors(options.excludeCredentials),
				authenticatorSelection: {
					authenticatorAttachment: where === 'any' ? undefined : where,
					residentKey: 'preferred',
					userVerification: 'required'
				},
				attestation: 'none',
				timeout: options.timeout
			}
		})
	);
}

async function assertion(options: PasskeyRequestOptions) {
	const credential = await asked(
		navigator.credentials.get({
			publicKey: {
				challenge: bytes(options.challenge),
				rpId: options.rpId,
				allowCredentials: descriptors(options.allowCredentials),
				userVerification: 'required',
				timeout: options.timeout
			}
		})
	);
	const response = credential.response as AuthenticatorAssertionResponse;
	return {
		id: text(credential.rawId),
		clientData: text(response.clientDataJSON),
		authenticatorData: text(response.authenticatorData),
		signature: text(response.signature),
		userHandle: response.userHandle ? text(response.userHandle) : undefined
	};
}

/** Makes a passkey and adds it to the account. */
export async function addPasskey(name: string, where: Keeping, password?: string): Promise<void> {
	const options = await send(api.POST('/api/app/account/passkeys/options', { body: { password } }));
	const credential = await create(options, where);
	const response = credential.response as AuthenticatorAttestationResponse;
	const made = {
		name,
		clientData: text(response.clientDataJSON),
		attestation: text(response.attestationObject),
		transports: response.getTransports()
	};
	await send(api.POST('/api/app/account/passkeys', { body: made }));
}

/** Logs in whoever chooses a passkey. */
export async function logInWithPasskey(): Promise<void> {
	const body = await assertion(await send(api.POST('/api/auth/passkey/options')));
	await send(api.POST('/api/auth/passkey', { body }));
}

/** Finishes the sign-in that waits in this browser. */
export async function verifyWithPasskey(): Promise<void> {
	const body = await assertion(await send(api.POST('/api/auth/two-factor/passkey/options')));
	await send(api.POST('/api/auth/two-factor/passkey', { body }));
}

/** Shows in a session that its person uses it. */
export async function proveWithPasskey(): Promise<void> {
	const body = await assertion(await send(api.POST('/api/app/account/proof/passkey/options')));
	await send(api.POST('/api/app/account/proof/passkey', { body }));
}
