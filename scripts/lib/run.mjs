import { spawn } from 'node:child_process';
import { root } from './files.mjs';
import { Failure } from './failure.mjs';

/**
 * Runs a command without input and returns its standard output. Shows its output only if it fails, as a Failure.
 * @param {string} file
 * @param {string[]} args
 * @param {{ env?: NodeJS.ProcessEnv, cwd?: string, signal?: AbortSignal | undefined, failure?: string }} [options]
 *   `failure` is the error message if the command fails; aborting `signal` ends the command
 * @returns {Promise<string>}
 */
export function run(file, args, { env = process.env, cwd = root, signal, failure } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'], ...(signal ? { signal } : {}) });
    let out = '';
    let all = '';
    child.stdout.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      out += chunk;
      all += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ chunk) => {
      all += chunk;
    });
    const reason = failure ?? `${file} ${args.join(' ')} failed`;
    child.once('error', (error) => {
      reject(signal?.aborted ? error : new Failure(`${reason} (${error.message})`, all));
    });
    child.once('close', (code, killedBy) => {
      if (code === 0) resolve(out);
      else reject(new Failure(`${reason} (${killedBy ?? `exit code ${code}`})`, all));
    });
  });
}
