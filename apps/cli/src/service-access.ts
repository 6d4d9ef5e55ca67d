import { parseApiKey, parseUrl } from '@callplane/core';
import { parseEnvironment } from '@callplane/runtime';
import { Type } from 'typebox';
import type { Cli } from './cli.js';
import { CliConfig } from './config.js';
import { UsageError } from './failure.js';
import { quoted } from './terminal.js';

/** The API of the local start. */
const URL_DEFAULT = 'http://localhost:8080';
export const URL_OPTION = ['--url <url>', `the service (default: CALLPLANE_URL, or ${URL_DEFAULT})`] as const;
const AccessConfig = Type.Pick(CliConfig, ['CALLPLANE_URL', 'CALLPLANE_API_KEY']);

export interface ServiceAccess {
  /** Without a slash or `/v1` at its end. */
  url: string;
  /** A secret API key. */
  key: string;
}

/** The service and the key of a command that needs nothing else, from its options or the environment. */
export function serviceAccess(cli: Cli, options: { url?: string; key?: string }): ServiceAccess {
  const config = parseEnvironment(AccessConfig, cli.environment);
  const key = options.key ?? config.CALLPLANE_API_KEY;
  if (key === undefined) throw new UsageError('Set CALLPLANE_API_KEY, or give an API key with --key.');
  if (parseApiKey(key) !== 'secret') throw new UsageError('Give a secret API key, rtc_sk_….');
  return { url: serviceUrl(options.url ?? config.CALLPLANE_URL), key };
}

/** The URL of the service, without a slash or `/v1` at its end. @throws UsageError */
export function serviceUrl(text = URL_DEFAULT): string {
  const url = parseUrl(text);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw new UsageError(
      `Give the URL of the service as --url, such as https://calls.example.com, not ${quoted(text)}.`,
    );
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v1$/, '');
}
