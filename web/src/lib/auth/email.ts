/** Whether an address can be right; undefined when it can, else what is missing. */
export function emailFault(email: string): 'empty' | 'at' | 'ending' | undefined {
	const address = email.trim();
	if (address === '') return 'empty';
	const at = address.lastIndexOf('@');
	if (at < 1 || at === address.length - 1 || /\s/.test(address)) return 'at';
	const host = address.slice(at + 1);
	if (host !== 'localhost' && !/^[^.]+(\.[^.]+)+$/.test(host)) return 'ending';
	return undefined;
}
