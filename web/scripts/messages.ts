/** Compiles the message catalogue without a build, for the type checker and unit tests. */
import { compile } from '@inlang/paraglide-js';
import { paraglide } from './paraglide.ts';

await compile(paraglide);
