import { types } from 'node:util';

/**
 * Prefer secrets by version: the version header then selects the secret, so that a rotation needs no trial and error.
 */
export type SigningSecrets =
  | string
  | readonly string[]
  | Readonly<Record<string, string>>
  | ReadonlyMap<string | number, string>;

/** Validated secrets: a list to try, or a map by version. */
export type CheckedSecrets = readonly string[] | ReadonlyMap<string, string>;

/** @throws TypeError for a value that is not a signing secret. With an empty secret anyone could sign. */
export function checkedSecrets(secrets: unknown): CheckedSecrets {
  if (typeof secrets === 'string') return [checkedSecret(secrets)];
  if (Array.isArray(secrets) && secrets.length > 0) return secrets.map(checkedSecret);
  if (typeof secrets !== 'object' || secrets === null || Array.isArray(secrets))
    throw new TypeError('`secrets` contains no signing secret.');
  const byVersion = types.isMap(secrets) ? [...secrets] : Object.entries(secrets);
  return new Map(byVersion.map(([version, secret]) => [String(version), checkedSecret(secret)]));
}

export function secretsOfVersion(secrets: CheckedSecrets, version: number): readonly string[] {
  if (!(secrets instanceof Map)) return secrets as readonly string[];
  const secret = (secrets as ReadonlyMap<string, string>).get(String(version));
  return secret === undefined ? [] : [secret];
}

function checkedSecret(secret: unknown): string {
  if (typeof secret !== 'string' || !/^whsec_./.test(secret)) {
    throw new TypeError('A signing secret must be a string that begins with whsec_. The prefix is part of the secret.');
  }
  return secret;
}
