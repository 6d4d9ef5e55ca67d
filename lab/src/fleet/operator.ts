import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { redisUrlOf } from '@callplane/local-servers';
import { mainOf } from './apps.js';

/** For one command of an operator while PostgreSQL may be away, in milliseconds. */
const RTC_WITHIN_MS = 60_000;
const OUTPUT_BYTES_MAX = 16 * 1024 * 1024;

/** The environment of a customer, with an API key. */
export interface KnownTenant {
  /** `a`, `b` … as in `tenant` of histories. */
  name: string;
  projectId: string;
  environmentId: string;
  key: string;
}

interface Created {
  id: string;
}

/** An operator with `rtc` and the settings of a fleet. */
export class Operator {
  constructor(private readonly env: Record<string, string>) {}

  /**
   * Runs `rtc` with these arguments.
   * @throws Error with its output if it fails.
   */
  async rtc<T = Created>(...args: string[]): Promise<T> {
    const options = {
      env: { PATH: process.env['PATH'], ...this.env, REDIS_URL: redisUrlOf(this.env['REDIS_URL'] ?? '', 'cli') },
      timeout: RTC_WITHIN_MS,
      maxBuffer: OUTPUT_BYTES_MAX,
    };
    const { stdout } = await promisify(execFile)(process.execPath, [mainOf('cli'), ...args, '--json'], options);
    return JSON.parse(stdout.trim() === '' ? '{}' : stdout) as T;
  }

  async newTenant(name: string): Promise<KnownTenant> {
    const { id: projectId } = await this.rtc('projects', 'create', '--name', name);
    const { id: environmentId } = await this.rtc('environments', 'create', '--project', projectId, '--name', name);
    const { key } = await this.newKey(environmentId);
    return { name, projectId, environmentId, key };
  }

  newKey(environmentId: string): Promise<Created & { key: string }> {
    return this.rtc('keys', 'create', '--env', environmentId, '--type', 'secret');
  }
}
