import { Command, type CommanderError } from 'commander';
import { addApiCommand } from './api.command.js';
import type { Cli } from './cli.js';
import { consoleCommands } from './console.commands.js';
import { dbCommands } from './db.commands.js';
import { deliveriesCommands } from './deliveries.commands.js';
import { addDoctorCommand } from './doctor/doctor.command.js';
import { failureOf, UsageError, type Failure } from './failure.js';
import { keysCommands } from './keys.commands.js';
import { addListenCommand } from './listen.command.js';
import { addLoadCommand } from './load/load.command.js';
import { mediaCommands } from './media/media.commands.js';
import { addQueuesCommand, operationsCommands } from './operations.commands.js';
import { recoveriesCommands } from './recoveries.commands.js';
import { recordingsCommands } from './recordings.commands.js';
import { participantsCommands, roomsCommands } from './rooms.commands.js';
import { tokensCommands } from './tokens.commands.js';
import { encryptionCommands, signingKeysCommands } from './secrets.commands.js';
import { environmentsCommands, projectsCommands } from './tenants.commands.js';
import { printable } from './terminal.js';
import { eventsCommands, webhooksCommands } from './webhooks.commands.js';

export async function run(terminal: Cli, commandLine: readonly string[]): Promise<Failure | null> {
  const { environment, clock } = terminal;
  // Whatever a command prints passes here: no name and no answer of a server can steer the terminal.
  const cli: Cli = {
    environment,
    clock,
    write: (text) => terminal.write(printable(text)),
    note: (text) => terminal.note?.(printable(text)),
  };
  try {
    await program(cli).parseAsync(commandLine, { from: 'user' });
    return null;
  } catch (error) {
    return error instanceof HelpShown ? null : failureOf(error, environment['RTC_LOCAL_START'] === 'true');
  }
}

class HelpShown extends Error {}

function program(cli: Cli): Command {
  const rtc = new Command('rtc').description(
    'Administers Callplane: projects, environments, keys, the database and running services.',
  );
  rtc.addHelpText('after', '\nExample:\n  $ rtc projects create --name "My app"');
  rtc.addCommand(projectsCommands(cli));
  rtc.addCommand(environmentsCommands(cli));
  rtc.addCommand(keysCommands(cli));
  rtc.addCommand(consoleCommands(cli));
  rtc.addCommand(signingKeysCommands(cli));
  rtc.addCommand(encryptionCommands(cli));
  rtc.addCommand(mediaCommands(cli));
  rtc.addCommand(dbCommands(cli));
  rtc.addCommand(roomsCommands(cli));
  rtc.addCommand(participantsCommands(cli));
  rtc.addCommand(tokensCommands(cli));
  rtc.addCommand(recordingsCommands(cli));
  rtc.addCommand(eventsCommands(cli));
  rtc.addCommand(operationsCommands(cli));
  rtc.addCommand(webhooksCommands(cli));
  rtc.addCommand(deliveriesCommands(cli));
  rtc.addCommand(recoveriesCommands(cli));
  addApiCommand(rtc, cli);
  addListenCommand(rtc, cli);
  addQueuesCommand(rtc, cli);
  addDoctorCommand(rtc, cli);
  addLoadCommand(rtc, cli);
  throwInsteadOfExiting(rtc, cli, 'rtc');
  return rtc;
}

/**
 * Makes commander throw instead of printing several lines and ending the process. `run` then reports the error in one
 * line.
 */
function throwInsteadOfExiting(command: Command, cli: Cli, path: string): void {
  command.configureOutput({ writeOut: cli.write, writeErr: () => undefined });
  command.exitOverride((error: CommanderError) => {
    if (error.exitCode === 0) throw new HelpShown();
    const what = error.code === 'commander.help' ? 'give a command' : error.message.replace(/^error: /, '');
    throw new UsageError(`${path}: ${what} (see "${path} --help")`);
  });
  for (const sub of command.commands) throwInsteadOfExiting(sub, cli, `${path} ${sub.name()}`);
}
