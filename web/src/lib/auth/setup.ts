/** What the first steps of the set-up collect. */
export interface Owner {
	setupToken: string;
	name: string;
	email: string;
	password: string;
}
