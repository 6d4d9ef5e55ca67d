import { randomBytes } from 'node:crypto';
import {
  ACTIVATE_IN_SECONDS_MAX,
  formatTimestamp,
  generateSigningSecret,
  presentWebhookEndpoint,
  seal,
  type Tenant,
} from '@callplane/core';
import { endSecretRotation, rotateWebhookSecret, tenantOfWebhookEndpoint, type Prisma } from '@callplane/db';
import { InvalidArgumentError, type Command } from 'commander';
import { masterKeysOf, withDatabase, type Cli } from './cli.js';
import { CommandError } from './failure.js';
import { parseDuration } from './options.js';
import { addCommand, print, type OutputOptions } from './output.js';
import { noEndpoint } from './recoveries.commands.js';

/** Time for the owner of a receiver to deploy the new secret. */
const ACTIVATE_IN_SECONDS_DEFAULT = 86_400;

/** Adds the commands that change the signing secret of an endpoint. */
export function addSecretCommands(webhooks: Command, cli: Cli): void {
  const rotation = 'Give an endpoint a new signing secret, which signs once its receiver has had time to learn it';
  addCommand(webhooks, 'rotate-secret <endpoint>', rotation, 'rtc webhooks rotate-secret whep_01… --activate-in 2h')
    .option(
      '--activate-in <time>',
      'time until the new secret signs new runs, such as 24h; at most 7d, and 0 for at once (default: 24h)',
      parseActivateIn,
      ACTIVATE_IN_SECONDS_DEFAULT,
    )
    .action((endpointId: string, options: OutputOptions & { activateIn: number }) => rotate(cli, options, endpointId));
  addCommand(
    webhooks,
    'activate-secret <endpoint>',
    'Sign new runs with the next secret at once',
    'rtc webhooks activate-secret whep_01…',
  ).action((endpointId: string, options: OutputOptions) => endRotation(cli, options, endpointId, 'activate'));
  addCommand(
    webhooks,
    'cancel-rotation <endpoint>',
    'Cancel a rotation whose secret does not sign yet',
    'rtc webhooks cancel-rotation whep_01…',
  ).action((endpointId: string, options: OutputOptions) => endRotation(cli, options, endpointId, 'cancel'));
}

function rotate(cli: Cli, options: OutputOptions & { activateIn: number }, endpointId: string): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const masterKeys = masterKeysOf(config);
    const signingSecret = generateSigningSecret(randomBytes(32));
    const sealVersion = (version: number) => seal(masterKeys, signingSecret, `webhook-secret:${endpointId}:${version}`);
    const rotation = { sealVersion, activateInSeconds: options.activateIn };
    const rotated = await database.prisma.$transaction(async (tx) =>
      rotateWebhookSecret(tx, await tenantOf(tx, endpointId), endpointId, rotation, cli.clock.now()),
    );
    if (rotated === null) throw noEndpoint(endpointId);
    if (rotated === 'SECRET_ROTATION_WAITS') {
      throw new CommandError(
        `A new secret of ${endpointId} waits already. Use "rtc webhooks activate-secret" or "rtc webhooks cancel-rotation" first.`,
      );
    }
    const { signingKeyVersion, nextSigningKeyVersion, nextActivatesAt } = rotated;
    const from = nextActivatesAt === null ? 'now' : formatTimestamp(nextActivatesAt);
    const text = `Version ${nextSigningKeyVersion ?? signingKeyVersion} signs new runs of ${endpointId} from ${from} on. Its secret, shown only once:\n${signingSecret}`;
    print(cli, options, { ...presentWebhookEndpoint(rotated), signingSecret }, text);
  });
}

function endRotation(cli: Cli, options: OutputOptions, endpointId: string, end: 'activate' | 'cancel'): Promise<void> {
  return withDatabase(cli, async (database) => {
    const endpoint = await database.prisma.$transaction(async (tx) =>
      endSecretRotation(tx, await tenantOf(tx, endpointId), endpointId, end, cli.clock.now()),
    );
    if (endpoint === null) throw noEndpoint(endpointId);
    if (endpoint === 'NO_SECRET_ROTATION') throw new CommandError(`No new secret of ${endpointId} waits.`);
    const text = `Version ${endpoint.signingKeyVersion} signs new runs of ${endpointId}.`;
    print(cli, options, presentWebhookEndpoint(endpoint), text);
  });
}

async function tenantOf(tx: Prisma.TransactionClient, endpointId: string): Promise<Tenant> {
  const tenant = await tenantOfWebhookEndpoint(tx, endpointId);
  if (tenant === null) throw noEndpoint(endpointId);
  return tenant;
}

/** @returns seconds */
function parseActivateIn(text: string): number {
  const seconds = text === '0' ? 0 : parseDuration(text);
  if (seconds > ACTIVATE_IN_SECONDS_MAX) throw new InvalidArgumentError('Give at most 7d.');
  return seconds;
}
