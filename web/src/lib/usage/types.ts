/** The contract's shapes of use and limits. */
import type { components } from '#lib/api/schema.ts';

type Schemas = components['schemas'];

export type UsageReport = Schemas['UsageReport'];
export type UsageGroup = Schemas['UsageGroup'];
export type UsageAmounts = Schemas['UsageAmounts'];
export type GroupBy = Schemas['UsageGroupBy'];
export type Limit = Schemas['LimitView'];
export type BudgetStatus = Schemas['BudgetStatus'];

/** What is plotted. */
export type Metric = 'costCents' | 'tokens' | 'requests';
/** The steps of a plot. */
export type Step = 'day' | 'week' | 'month';
/** A row that the whole page is narrowed to. */
export type UsageFilter = { by: 'agent' | 'model' | 'person' | 'key'; key: string; label: string } | null;
