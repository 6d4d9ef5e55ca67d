import { resealSecrets } from '@callplane/db';
import { Command } from 'commander';
import { masterKeysOf, withDatabase, type Cli } from './cli.js';
import { addCommand, print, type OutputOptions } from './output.js';

export function encryptionCommands(cli: Cli): Command {
  const encryption = new Command('encryption').description('Secrets at rest');
  const description = 'Seal every secret with the first key of ENCRYPTION_KEYS, so that the other keys can be removed';
  addCommand(encryption, 'reseal', description, 'ENCRYPTION_KEYS=k2:…,k1:… rtc encryption reseal').action(
    (options: OutputOptions) =>
      withDatabase(cli, async ({ sql }, config) => {
        const masterKeys = masterKeysOf(config);
        const done = await resealSecrets(sql, masterKeys);
        const text = [
          `${done.webhookSecrets} webhook secrets and ${done.signingKeys} signing keys are sealed with ${masterKeys.sealWith} now.`,
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
