import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { stopAtEnd } from '@callplane/testing';

/**
 * Network namespaces, each with a cable to this machine on which the kernel loses packets. They need root. The kernel needs
 * no netem: `iptables` loses packets, and `tbf` limits the rate.
 */

/** The addresses of one test file: 198.18.0.0/15 is for tests of networks, and no host routes it. */
const NET = `198.18.${process.pid % 256}`;
/** Where the servers of the test listen, on this machine. */
export const SERVICE_ADDRESS = `${NET}.1`;
/** An address in each namespace, from the second one on. */
export const addressOf = (at: number): string => `${NET}.${4 * at + 6}`;

const ip = (...args: string[]): void => void execFileSync('ip', args, { stdio: 'pipe' });

/** Gives this machine the address of the servers. */
export function addServiceAddress(): void {
  ip('addr', 'replace', `${SERVICE_ADDRESS}/32`, 'dev', 'lo');
  stopAtEnd(async () => ip('addr', 'del', `${SERVICE_ADDRESS}/32`, 'dev', 'lo'));
}

export interface LineFaults {
  /** Rules of iptables for packets from the namespace; the first that matches decides. */
  drop?: readonly string[];
  /** In both directions. */
  kbitPerSecond?: number;
  /** 20 loses every twentieth packet in each direction. */
  losesOneOf?: number;
}

export interface Namespace {
  /** Runs a program of Node in the namespace. @returns its exit code and output */
  node(
    args: readonly string[],
    env: Record<string, string>,
  ): Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** @param hosts names that lead to the service */
export function addNamespace(at: number, hosts: readonly string[], faults: LineFaults): Namespace {
  const name = `callplane-${process.pid}-${at}`;
  const [outside, inside] = [`cp${process.pid}-${at}`, `ns${process.pid}-${at}`];
  const gateway = `${NET}.${4 * at + 5}`;
  const files = join('/etc/netns', name);
  const within = (...command: string[]): void => ip('netns', 'exec', name, ...command);
  ip('netns', 'add', name);
  stopAtEnd(async () => {
    ip('netns', 'del', name);
    rmSync(files, { recursive: true });
  });
  // `ip netns exec` shows these instead of the files of /etc.
  mkdirSync(files, { recursive: true });
  writeFileSync(join(files, 'hosts'), hosts.map((host) => `${SERVICE_ADDRESS} ${host}\n`).join(''));
  ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'netns', name);
  ip('addr', 'add', `${gateway}/30`, 'dev', outside);
  ip('link', 'set', outside, 'up');
  within('ip', 'addr', 'add', `${addressOf(at)}/30`, 'dev', inside);
  for (const device of ['lo', inside]) within('ip', 'link', 'set', device, 'up');
  within('ip', 'route', 'add', 'default', 'via', gateway);
  const { drop = [], kbitPerSecond, losesOneOf } = faults;
  within('iptables', '-A', 'OUTPUT', '-o', 'lo', '-j', 'ACCEPT');
  for (const rule of drop) within('iptables', '-A', 'OUTPUT', ...rule.split(' '), '-j', 'DROP');
  if (losesOneOf !== undefined) {
    const every = ['-m', 'statistic', '--mode', 'nth', '--every', String(losesOneOf), '--packet', '0', '-j', 'DROP'];
    for (const [chain, device] of [
      ['OUTPUT', '-o'],
      ['INPUT', '-i'],
    ] as const)
      within('iptables', '-A', chain, device, inside, ...every);
  }
  if (kbitPerSecond !== undefined) {
    const shape = ['root', 'tbf', 'rate', `${kbitPerSecond}kbit`, 'burst', '3kb', 'latency', '300ms'];
    execFileSync('tc', ['qdisc', 'add', 'dev', outside, ...shape], { stdio: 'pipe' });
    within('tc', 'qdisc', 'add', 'dev', inside, ...shape);
  }
  return {
    async node(args, env) {
      const child = spawn('ip', ['netns', 'exec', name, process.execPath, ...args], {
        env: { PATH: process.env['PATH'], ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
      stopAtEnd(() => {
        child.kill('SIGKILL');
        return exited;
      });
      const [code, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
      return { code, stdout, stderr };
    },
  };
}
