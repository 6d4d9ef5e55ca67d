import {
  activateDueSigningKey,
  ensureSigningKey,
  listSigningKeys,
  resealSecrets,
  rotateSigningKey,
} from '@callplane/db';
import { Command } from 'commander';
import { masterKeysOf, notifyApps, withDatabase, type Cli } from './cli.js';
import { CommandError } from './failure.js';
import { parsePublishSeconds } from './options.js';
import { addCommand, addList, print, type OutputOptions } from './output.js';

/** Longer than verifiers usually cache a JWKS. */
const PUBLISH_SECONDS_DEFAULT = 300;

export function signingKeysCommands(cli: Cli): Command {
  const signingKeys = new Command('signing-keys').description('Keys that sign participant tokens');
  const description = 'Publish a new signing key, which signs once verifiers have had time to fetch it';
  addCommand(signingKeys, 'rotate', description, 'rtc signing-keys rotate --publish-seconds 600')
    .option(
      '--publish-seconds <seconds>',
      'seconds from its publication until it signs, 0 to 86400',
      parsePublishSeconds,
      PUBLISH_SECONDS_DEFAULT,
    )
    .action((options: OutputOptions & { publishSeconds: number }) => rotate(cli, options));
  addList(signingKeys, cli, {
    description: 'List the signing keys',
    example: 'rtc signing-keys list',
    rows: ({ prisma }) => listSigningKeys(prisma),
    columns: {
      KEY: (row) => row.id,
      STATUS: (row) => row.status,
      USE: (row) =>
        row.verifiesUntil === null
          ? `signs from ${row.activatesAt.toISOString()}`
          : `verifies until ${row.verifiesUntil.toISOString()}`,
    },
  });
  return signingKeys;
}

function rotate(cli: Cli, options: OutputOptions & { publishSeconds: number }): Promise<void> {
  return withDatabase(cli, async (database, config) => {
    const masterKeys = masterKeysOf(config);
    const now = cli.clock.now();
    // Do first the work that a running API would have done: create the first key and activate a due key.
    await ensureSigningKey(database, masterKeys, now);
    await activateDueSigningKey(database, now);
    const { outcome, kid, activatesAt } = await rotateSigningKey(database, masterKeys, now, options.publishSeconds);
    if (outcome === 'waiting') {
      const at = activatesAt.toISOString();
      throw new CommandError(`A rotation is in progress: key ${kid} signs from ${at} on. Try again after that.`);
    }
    await activateDueSigningKey(database, now);
    await notifyApps(config, 'signingKeysChanged', '');
    const text = `Key ${kid} is published and signs from ${activatesAt.toISOString()} on.`;
    print(cli, options, { id: kid, activatesAt }, text);
  });
}

export function encryptionCommands(cli: Cli): Command {
  const encryption = new Command('encryption').description('Secrets at rest');
  const description = 'Seal every secret with the first key of ENCRYPTION_KEYS, so that the other keys can be removed';
  addCommand(encryption, 'reseal', description, 'ENCRYPTION_KEYS=k2:…,k1:… rtc encryption reseal').action(
    (options: OutputOptions) =>
      withDatabase(cli, async ({ prisma }, config) => {
        const masterKeys = masterKeysOf(config);
        const done = await resealSecrets(prisma, masterKeys);
        const text = [
          `${done.webhookSecrets} secrets of webhooks and ${done.signingKeys} signing keys are sealed with ${masterKeys.sealWith} now.`,
          ...(done.answersLeft === 0
            ? []
            : [
                `${done.answersLeft} stored responses still need the older keys. Keep these keys for 24 more hours, until the responses expire.`,
              ]),
        ].join('\n');
        print(cli, options, { sealedWith: masterKeys.sealWith, ...done }, text);
      }),
  );
  return encryption;
}
