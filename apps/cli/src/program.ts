import { Command, type CommanderError } from 'commander';
import type { Cli } from './cli.js';
import { dbCommands } from './db.commands.js';
import { environmentsCommands } from './environments.commands.js';
import { failureOf, UsageError, type Failure } from './failure.js';
import { keysCommands } from './keys.commands.js';
import { mediaCommands } from './media.commands.js';
import { projectsCommands } from './projects.commands.js';
import { signingKeysCommands } from './signing-keys.commands.js';

/** Runs one command line; null when all went well. */
export async function run(cli: Cli, commandLine: readonly string[]): Promise<Failure | null> {
  try {
    await program(cli).parseAsync(commandLine, { from: 'user' });
    return null;
  } catch (error) {
    return error instanceof HelpShown ? null : failureOf(error);
  }
}

class HelpShown extends Error {}

function program(cli: Cli): Command {
  const rtc = new Command('rtc').description('Administers Callplane: projects, environments, keys and the database.');
  rtc.addHelpText('after', '\nExample:\n  $ rtc projects create --name "My app"');
  rtc.addCommand(projectsCommands(cli));
  rtc.addCommand(environmentsCommands(cli));
  rtc.addCommand(keysCommands(cli));
  rtc.addCommand(signingKeysCommands(cli));
  rtc.addCommand(mediaCommands(cli));
  rtc.addCommand(dbCommands(cli));
  throwInsteadOfExiting(rtc, cli, 'rtc');
  return rtc;
}

/** Commander prints what is wrong over several lines and ends the process: here it throws, and `run` says one line. */
function throwInsteadOfExiting(command: Command, cli: Cli, path: string): void {
  command.configureOutput({ writeOut: cli.write, writeErr: () => undefined });
  command.exitOverride((error: CommanderError) => {
    if (error.exitCode === 0) throw new HelpShown();
    const what = error.code === 'commander.help' ? 'say what to do' : error.message.replace(/^error: /, '');
    throw new UsageError(`${path}: ${what} (see "${path} --help")`);
  });
  for (const sub of command.commands) throwInsteadOfExiting(sub, cli, `${path} ${sub.name()}`);
}
