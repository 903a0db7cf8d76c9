/** A real identity provider that speaks SAML on this machine: `samlify` with a login page of its own, and whoever logs in. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as saml from 'samlify';

const keys = new URL('../../../crates/testkit/src/saml_provider/', import.meta.url);
const pem = (name: string) => readFileSync(new URL(name, keys), 'utf8');
/** A key pair of a Tale, for encrypted assertions. */
export const OWN = { certificate: pem('own.pem'), key: pem('own-key.pem') };

const NAME = 'urn:oasis:names:tc:SAML:2.0:attrname-format:basic';
const EMAIL = 'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress';

export interface SamlProvider {
	/** Where its metadata are. */
	metadata: string;
	/** Where a sign-in begins at the provider: a page with the application in it. */
	portal: string;
	/** What it says about people, by what they type as their login. */
	people: Record<string, { email: string; name: string; group: string }>;
	/** Believes and encrypts as these metadata say. */
	register: (metadata: string, encrypt: boolean) => void;
	stop: () => void;
}

const page = (body: string) => `<!doctype html><html lang="en"><title>Provider</title><main>${body}</main></html>`;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');

const authentication = (at: Date) =>
	`<saml:AuthnStatement AuthnInstant="${at.toISOString()}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>`;

async function formOf(request: IncomingMessage): Promise<URLSearchParams> {
	let body = '';
	for await (const piece of request) body += String(piece);
	return new URLSearchParams(body);
}

export async function startSamlProvider(): Promise<SamlProvider> {
	saml.setSchemaValidator({ validate: () => Promise.resolve('not validated here') });
	const server = createServer();
	await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
	const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	const people: SamlProvider['people'] = {};
	const settings = {
		entityID: `${origin}/entity`,
		signingCert: pem('provider.pem'),
		privateKey: pem('provider-key.pem'),
		requestSignatureAlgorithm: 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
		dataEncryptionAlgorithm: 'http://www.w3.org/2009/xmlenc11#aes256-gcm',
		keyEncryptionAlgorithm: 'http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p',
		nameIDFormat: [EMAIL],
		singleSignOnService: [
			{ Binding: 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect', Location: `${origin}/sign-on` }
		],
		loginResponseTemplate: {
			context: saml.SamlLib.defaultLoginResponseTemplate.context,
			attributes: ['email', 'name', 'groups'].map((name) => ({
				name,
				valueTag: name,
				nameFormat: NAME,
				valueXsiType: 'xs:string'
			}))
		}
	};
	let provider = saml.IdentityProvider({ ...settings, isAssertionEncrypted: false });
	let application: ReturnType<typeof saml.ServiceProvider> | undefined;

	/** `reply` is where the question wants its answer; none: where the metadata say. */
	async function answer(login: string, question: string, reply: string) {
		const person = people[login];
		if (!person || !application) throw new Error(`nobody is called ${login}`);
		const now = new Date();
		const end = new Date(now.getTime() + 5 * 60_000).toISOString();
		const [first] = [application.entityMeta.getAssertionConsumerService('post')].flat();
		const acs = reply || String(first);
		const said: Record<string, string> = {
			ID: `_${crypto.randomUUID()}`,
			AssertionID: `_${crypto.randomUUID()}`,
			Destination: acs,
			Audience: application.entityMeta.getEntityID(),
			EntityID: application.entityMeta.getEntityID(),
			SubjectRecipient: acs,
			AssertionConsumerServiceURL: acs,
			Issuer: settings.entityID,
			IssueInstant: now.toISOString(),
			StatusCode: 'urn:oasis:names:tc:SAML:2.0:status:Success',
			ConditionsNotBefore: now.toISOString(),
			ConditionsNotOnOrAfter: end,
			SubjectConfirmationDataNotOnOrAfter: end,
			NameIDFormat: EMAIL,
			NameID: person.email,
			InResponseTo: question,
			attrEmail: person.email,
			attrName: person.name,
			attrGroups: person.group
		};
		const { context } = await provider.createLoginResponse(
			application,
			{ extract: { request: { id: question } } },
			'post',
			{ email: person.email },
			{
				customTagReplacement: (template: string) => {
					const whole = template.replace('{AuthnStatement}', authentication(now));
					// A sign-in that nobody asked for answers nothing.
					const own = question ? whole : whole.replaceAll(' InResponseTo="{InResponseTo}"', '');
					return { id: said.ID ?? '', context: saml.SamlLib.replaceTagsByValue(own, said) };
				}
			}
		);
		return page(
			`<form method="post" action="${escaped(acs)}"><input type="hidden" name="SAMLResponse" value="${escaped(context)}"></form><script>document.forms[0].submit()</script>`
		);
	}

	async function handle(request: IncomingMessage): Promise<[string, string]> {
		const url = new URL(request.url ?? '/', origin);
		if (url.pathname === '/metadata') return ['application/samlmetadata+xml', provider.getMetadata()];
		const form = (question: string, reply: string) =>
			page(
				`<form method="post" action="/login"><label>Login <input name="login"></label><input type="hidden" name="question" value="${escaped(question)}"><input type="hidden" name="reply" value="${escaped(reply)}"><button>Sign in</button></form>`
			);
		if (url.pathname === '/sign-on' && application) {
			if (!url.searchParams.has('SAMLRequest')) return ['text/html', form('', '')];
			const query = Object.fromEntries(url.searchParams);
			const { extract } = await provider.parseLoginRequest(application, 'redirect', { query });
			const { id, assertionConsumerServiceUrl } = extract.request ?? {};
			return ['text/html', form(String(id ?? ''), String(assertionConsumerServiceUrl ?? ''))];
		}
		if (url.pathname === '/login') {
			const sent = await formOf(request);
			return ['text/html', await answer(sent.get('login') ?? '', sent.get('question') ?? '', sent.get('reply') ?? '')];
		}
		return ['text/plain', 'a provider'];
	}

	server.on('request', (request: IncomingMessage, response: ServerResponse) => {
		handle(request).then(
			([type, body]) => response.writeHead(200, { 'content-type': type }).end(body),
			(error: unknown) => response.writeHead(500).end(String(error))
		);
	});
	return {
		metadata: `${origin}/metadata`,
		portal: `${origin}/sign-on`,
		people,
		register: (metadata, encrypt) => {
			provider = saml.IdentityProvider({ ...settings, isAssertionEncrypted: encrypt });
			application = saml.ServiceProvider({ metadata });
		},
		stop: () => server.close()
	};
}
