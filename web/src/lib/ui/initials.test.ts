import { expect, test } from 'vitest';
import { initials } from './initials.ts';

test('two words give two letters', () => expect(initials('Maya Lindqvist')).toBe('ML'));
test('middle names are left out', () => expect(initials('Ada M. King')).toBe('AK'));
test('one word gives one letter', () => expect(initials('maya')).toBe('M'));
test('letters outside the basic plane stay whole', () => expect(initials('𝒜da')).toBe('𝒜'));
test('an empty name gives a mark instead of nothing', () => expect(initials('  ')).toBe('?'));
