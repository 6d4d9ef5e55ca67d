import { spawnSync } from 'node:child_process';
import { SETPRIV, type Command } from './unprivileged.js';

let canBind: boolean | undefined;

/**
 * Makes the kernel send a signal to the command's process when this one has ended, for whatever reason. Only Linux does
 * that, for children of the main thread. Elsewhere the command stays as it is.
 */
export function bound(command: Command, signal: 'KILL' | 'TERM' = 'KILL'): Command {
  canBind ??= spawnSync(SETPRIV, ['--pdeathsig', 'KILL', 'true']).status === 0;
  if (!canBind) return command;
  const { file, args, options } = command;
  // A change of the user would clear the signal. If setpriv makes the change, the same call sets the signal after it.
  return { file: SETPRIV, args: ['--pdeathsig', signal, ...(file === SETPRIV ? args : [file, ...args])], options };
}
