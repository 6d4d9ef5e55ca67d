import { HEIGHT, WIDTH } from './layouts.js';
import type { Scene, Tile } from './scenes.js';
import type { Interval } from './speakers.js';

export const COMPOSITE_FORMATS = ['mp4', 'webm'] as const;
export type CompositeFormat = (typeof COMPOSITE_FORMATS)[number];

const FRAMES_PER_SECOND = 25;
const PICTURE_CODECS: Record<CompositeFormat, readonly string[]> = {
  // Colors stay the ones of the tracks.
  mp4: [
    ...['-c:v', 'libx264', '-preset', 'veryfast', '-crf', '26', '-maxrate', '1500k', '-bufsize', '3000k', '-bf', '0'],
    ...['-colorspace', 'smpte170m', '-color_primaries', 'smpte170m', '-color_trc', 'smpte170m'],
  ],
  webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '1200k', '-auto-alt-ref', '0'],
};
const SOUND_CODECS: Record<CompositeFormat, readonly string[]> = {
  mp4: ['-c:a', 'aac', '-b:a', '96k', '-movflags', '+faststart', '-f', 'mp4'],
  webm: ['-c:a', 'libopus', '-b:a', '64k', '-cues_to_front', '1', '-f', 'webm'],
};
/** The most that a minute of scenes and of their composite takes on the disk, in bytes. */
export const BYTES_PER_MINUTE = 30_000_000;
/** The same input makes the same bytes. */
const EXACT = ['-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'];
const TILE = '0x202020';
const NO_PICTURE = '0x303848';
/** Sounds of several people may exceed the range of a sample in a scene; a limiter follows. */
const HEADROOM = 4;
const SOUND = 'aresample=48000:async=1:min_hard_comp=0.02:first_pts=0,aformat=channel_layouts=mono';

/** The file of a track that a scene has. */
export interface Source extends Interval {
  path: string;
}

/** Arguments of ffmpeg for one scene, in Matroska, with sound without loss: encoded sound has gaps where it is joined. */
export function sceneArguments(
  { fromMs, toMs, tiles }: Scene,
  pictures: ReadonlyMap<string, Source>,
  sounds: readonly Source[],
  { format, labels, hasPicture }: { format: CompositeFormat; labels: string; hasPicture: boolean },
): string[] {
  const seconds = (toMs - fromMs) / 1000;
  const inputs: string[] = [];
  const graph: string[] = [];
  let count = 0;
  const open = ({ path, fromMs: startMs }: Source, more: readonly string[]): number => {
    const offset = (startMs - fromMs) / 1000;
    inputs.push(...more, ...(offset < 0 ? ['-ss', String(-offset)] : ['-itsoffset', String(offset)]), '-i', path);
    return count++;
  };
  if (hasPicture) {
    const chains = tiles.map((tile, index) => {
      const source = tile.fileId === null ? undefined : pictures.get(tile.fileId);
      // From the key frame before the scene on: the picture at its begin is the latest one.
      const more = ['-threads', '1', '-reinit_filter', '0', '-noaccurate_seek'];
      return `${source === undefined ? blank(tile) : fitted(open(source, more), tile)}[t${index}]`;
    });
    graph.push(...chains, `${joined(tiles)},pad=${WIDTH}:${HEIGHT},ass=${labels}[v]`);
  }
  const heard = sounds.map((source, index) => {
    graph.push(`[${open(source, ['-threads', '1'])}:a]atrim=end=${seconds},${SOUND}[a${index}]`);
    return `[a${index}]`;
  });
  // Silence, so that the sound is as long as the scene.
  graph.push(`anullsrc=r=48000:cl=mono,atrim=end=${seconds}[s]`);
  const mix = `amix=inputs=${heard.length + 1}:duration=first:normalize=0:dropout_transition=0,volume=1/${HEADROOM}`;
  graph.push(`[s]${heard.join('')}${mix},aformat=sample_fmts=s16[a]`);
  return [
    ...['-filter_complex_threads', '1', ...inputs, '-filter_complex', graph.join(';')],
    ...(hasPicture ? ['-map', '[v]', '-r', String(FRAMES_PER_SECOND), ...PICTURE_CODECS[format]] : []),
    ...(hasPicture ? ['-pix_fmt', 'yuv420p', '-g', '125', '-threads', '1'] : []),
    ...['-map', '[a]', '-c:a', 'flac', '-t', String(seconds), ...EXACT, '-f', 'matroska'],
  ];
}

/** Arguments of ffmpeg that join scenes into a file that players can seek in. */
export function joinArguments(list: string, format: CompositeFormat): string[] {
  const sound = `volume=${HEADROOM},alimiter=limit=0.95:level=0`;
  const inputs = ['-f', 'concat', '-safe', '0', '-i', list];
  return [...inputs, '-map', '0', '-c:v', 'copy', '-af', sound, '-threads', '1', ...EXACT, ...SOUND_CODECS[format]];
}

function fitted(input: number, { width, height }: Tile): string {
  const fit = `scale=${width}:${height}:force_original_aspect_ratio=decrease:force_divisible_by=2,setsar=1`;
  // The last picture stays. A track without one has the tile of a person without a camera.
  const hold = `tpad=stop_mode=clone:stop=-1,tpad=stop_mode=add:stop=-1:color=${NO_PICTURE}`;
  return `[${input}:v]fps=${FRAMES_PER_SECOND}:start_time=0,${fit},pad=${width}:${height}:-1:-1:color=${TILE}:eval=frame,${hold}`;
}

const blank = ({ width, height }: Pick<Tile, 'width' | 'height'>, color = NO_PICTURE): string =>
  `color=c=${color}:s=${width}x${height}:r=${FRAMES_PER_SECOND}`;

function joined(tiles: readonly Tile[]): string {
  if (tiles.length === 0) return blank({ width: WIDTH, height: HEIGHT }, 'black');
  if (tiles.length === 1) return '[t0]null';
  const inputs = tiles.map((_, index) => `[t${index}]`).join('');
  const places = tiles.map(({ x, y }) => `${x}_${y}`).join('|');
  return `${inputs}xstack=inputs=${tiles.length}:fill=black:layout=${places}`;
}
