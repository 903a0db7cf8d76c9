/** The contract's shapes under the names the app uses. */
import type { components } from './schema.ts';

type Schemas = components['schemas'];

export type Role = Schemas['Role'];
export type Session = Schemas['Session'];
export type OrganizationSummary = Schemas['OrganizationSummary'];
export type PasswordPolicy = Schemas['PasswordPolicy'];
export type Account = Schemas['Account'];
export type AccountSession = Schemas['AccountSession'];
export type Preferences = Schemas['Preferences'];
export type Permissions = Schemas['Permissions'];
export type Member = Schemas['Member'];
export type ModelEndpoints = Schemas['ModelEndpoints'];
export type ApiKey = Schemas['ApiKey'];
export type CreatedApiKey = Schemas['CreatedApiKey'];
export type TrustedHeaders = Schemas['TrustedHeaders'];
export type TrustedKey = Schemas['TrustedKey'];
export type TrustedHeaderSettings = Schemas['TrustedHeaderSettings'];
export type CreatedTrustedKey = Schemas['CreatedTrustedKey'];
export type ApiFormat = Schemas['ApiFormat'];
export type Model = Schemas['Model'];
export type Provider = Schemas['Provider'];
export type CatalogResult = Schemas['CatalogResult'];
export type CheckedModels = Schemas['CheckedModels'];
export type Credential = Schemas['Credential'];
export type ProviderTest = Schemas['ProviderTest'];
export type EmbeddingSettings = Schemas['EmbeddingSettings'];
export type SearchResults = Schemas['SearchResults'];
export type SendRequest = Schemas['SendRequest'];
export type ThreadPage = Schemas['ThreadPage'];
export type TranscriptionSettings = Schemas['TranscriptionSettings'];
export type AttachmentStatus = Schemas['AttachmentStatus'];
export type ObjectStorage = Schemas['ObjectStorage'];
export type ObjectStorageForm = Schemas['ObjectStorageForm'];
export type ObjectStorageMove = Schemas['ObjectStorageMove'];
