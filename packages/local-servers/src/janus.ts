import { existsSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import WebSocket from 'ws';
import { LocalServerError, startServer, type LocalServer, type ServerOptions } from './server.js';
import { serverDirectory, serverFile, withoutRoot } from './unprivileged.js';

export interface JanusOptions extends ServerOptions {
  /** Holds the configuration (mode 0600), the pid file and links to the loaded modules. */
  dir: string;
  /** The address for media; see hostIPv4(). Janus never uses loopback for media. */
  host: string;
  /** TCP port of its WebSocket interface, on 127.0.0.1. */
  wsPort: number;
  /**
   * TCP port of its administration interface (sub-protocol `janus-admin-protocol`), on 127.0.0.1. Disabled if omitted.
   */
  adminPort?: number;
  rtpPortMin: number;
  rtpPortMax: number;
  /** Required in every request. */
  apiSecret: string;
  /** Required to create rooms and to list private ones. */
  adminKey: string;
  /** Required in every request to the administration interface. */
  adminSecret: string;
}

const ANSWERS_WITHIN_MS = 500;

/** The modules to link. Janus loads every module in its folders. */
const MODULES = { plugins: ['libjanus_videoroom'], transports: ['libjanus_websockets'], events: [], loggers: [] };

/**
 * Runs the Janus that JANUS_PATH names, or else `janus`, with only its VideoRoom and WebSocket modules: no HTTP, no sample
 * rooms, no well-known secrets. `url` is its WebSocket interface. It holds no secrets; requests carry them.
 *
 * `logFile` defaults to `<dir>/janus.log`. Throws a LocalServerError if the program is missing or does not start.
 */
export async function startJanus(options: JanusOptions): Promise<LocalServer> {
  const dir = resolve(options.dir);
  const etc = join(dir, 'etc');
  const configFile = join(etc, 'janus.jcfg');
  const pidFile = join(dir, 'janus.pid');
  const program = janusProgram();
  const library = modulesOf(program);
  serverDirectory(dir);
  serverDirectory(etc);
  serverDirectory(captureFolderOf(dir));
  rmSync(pidFile, { force: true });
  for (const [kind, modules] of Object.entries(MODULES)) {
    const folder = join(dir, kind);
    // Recreated, because links of an earlier run may point to a Janus that has moved.
    rmSync(folder, { recursive: true, force: true });
    serverDirectory(folder);
    for (const name of modules) symlinkSync(join(library, kind, `${name}.so`), join(folder, `${name}.so`));
  }
  for (const [name, sections] of Object.entries(configuration(options, dir, pidFile))) {
    serverFile(join(etc, `${name}.jcfg`), jcfg(sections));
  }
  return startServer({
    name: 'janus',
    port: options.wsPort,
    url: `ws://127.0.0.1:${options.wsPort}`,
    command: withoutRoot([configFile, program, library], [dir])(program, ['-F', etc, '-C', configFile]),
    logFile: options.logFile ?? join(dir, 'janus.log'),
    isReady: () => answersPing(options.wsPort),
    onSpawn: options.onSpawn,
  });
}

/** The folder that a Janus in this directory may write recordings into. */
export function captureFolderOf(dir: string): string {
  return join(resolve(dir), 'captures');
}

function janusProgram(): string {
  const named = process.env['JANUS_PATH'];
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const found = [named || folders.map((folder) => join(folder, 'janus'))].flat().find((program) => existsSync(program));
  if (found !== undefined) return found;
  throw new LocalServerError('janus', `cannot be run (${named || 'it'} is not installed)`, '');
}

/**
 * The folder of the modules that belong to a program. Debian and its derivatives use the folder of the processor's
 * architecture. A program finds only modules of its own version.
 */
function modulesOf(program: string): string {
  const usr = dirname(dirname(realpathSync(program)));
  const lib = join(usr, 'lib');
  const multiarch = existsSync(lib) ? readdirSync(lib).filter((name) => name.includes('-linux-')) : [];
  const found = [...multiarch.map((name) => join(lib, name)), lib, join(usr, 'lib64')]
    .map((folder) => join(folder, 'janus'))
    .find((folder) => existsSync(join(folder, 'plugins', 'libjanus_videoroom.so')));
  if (found !== undefined) return found;
  throw new LocalServerError('janus', `cannot be run (${program} has no VideoRoom module below ${usr})`, '');
}

type Sections = Record<string, Record<string, string | number | boolean>>;

/** Janus manual, "Configuration": one file for the core and one for each module. */
function configuration(options: JanusOptions, dir: string, pidFile: string): Record<string, Sections> {
  const admin =
    options.adminPort === undefined
      ? { admin_ws: false }
      : { admin_ws: true, admin_ws_port: options.adminPort, admin_ws_ip: '127.0.0.1' };
  return {
    janus: {
      general: {
        configs_folder: join(dir, 'etc'),
        plugins_folder: join(dir, 'plugins'),
        transports_folder: join(dir, 'transports'),
        events_folder: join(dir, 'events'),
        loggers_folder: join(dir, 'loggers'),
        pid_file: pidFile,
        debug_level: 3,
        debug_colors: false,
        debug_timestamps: true,
        api_secret: options.apiSecret,
        admin_secret: options.adminSecret,
        session_timeout: 30,
        reclaim_session_timeout: 30,
        hide_dependencies: true,
        event_loops: availableParallelism(),
        // The agent sees by it whether a file still grows.
        recordings_tmp_ext: 'part',
      },
      media: {
        rtp_port_range: `${options.rtpPortMin}-${options.rtpPortMax}`,
        no_media_timer: 2,
        twcc_period: 100,
        min_nack_queue: 600,
      },
      nat: { ignore_mdns: true, ice_enforce_list: options.host },
    },
    'janus.transport.websockets': {
      general: {
        json: 'compact',
        // Janus detects a client that vanished without closing after at most eight seconds.
        pingpong_trigger: 5,
        pingpong_timeout: 3,
        ws: true,
        ws_port: options.wsPort,
        ws_ip: '127.0.0.1',
        wss: false,
      },
      admin: { ...admin, admin_wss: false },
    },
    'janus.plugin.videoroom': {
      general: { admin_key: options.adminKey, lock_rtp_forward: true, string_ids: true },
    },
  };
}

/** Writes libconfig's syntax, which escapes strings as JSON does. */
function jcfg(sections: Sections): string {
  return Object.entries(sections)
    .map(([section, settings]) => {
      const lines = Object.entries(settings).map(([name, value]) => `  ${name} = ${JSON.stringify(value)}\n`);
      return `${section}: {\n${lines.join('')}}\n`;
    })
    .join('');
}

/** Whether Janus answers a ping, which needs no secret. A connection alone proves nothing: Janus accepts it earlier. */
function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'janus-protocol', { handshakeTimeout: ANSWERS_WITHIN_MS });
    const finish = (ready: boolean) => {
      clearTimeout(timer);
      socket.terminate();
      resolve(ready);
    };
    const timer = setTimeout(() => finish(false), ANSWERS_WITHIN_MS);
    socket.on('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('open', () => {
      socket.send(JSON.stringify({ janus: 'ping', transaction: 'ready' }));
    });
    socket.once('message', (data: Buffer) => finish(data.includes('pong')));
  });
}
