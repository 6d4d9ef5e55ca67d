import { writeSync } from 'node:fs';
import { Socket } from 'node:net';

/** Maximum text that waits for a slow reader, in bytes; about a thousand lines. */
const BUFFER_BYTES_MAX = 1024 * 1024;

let droppedLines = 0;

/** The number of lines that this process has dropped so far, for any reason. */
export function droppedLogLines(): number {
  return droppedLines;
}

/**
 * Writes lines and never fails. It drops and counts lines that it cannot write. A full disk, a closed pipe or a stuck
 * reader must neither end the process nor fill its memory.
 */
export interface LineWriter {
  /** @param text whole lines, each with its line feed. */
  write(text: string): void;
}

/** @param onResumed called with the number of lost lines as soon as lines can be written again. */
export function createLineWriter(stream: NodeJS.WritableStream, onResumed: (lost: number) => void): LineWriter {
  const fd = fileOf(stream);
  const lost = new Loss(onResumed);
  return fd === null ? streamWriter(stream, lost) : fileWriter(fd, lost);
}

class Loss {
  #unreported = 0;

  constructor(private readonly onResumed: (lost: number) => void) {}

  add(text: string): void {
    const lines = countLines(text);
    droppedLines += lines;
    this.#unreported += lines;
  }

  written(): void {
    if (this.#unreported === 0) return;
    const lost = this.#unreported;
    this.#unreported = 0;
    this.onResumed(lost);
  }
}

/**
 * Writes to a file behind standard output. A nearly full disk causes short writes, which Node's stream would treat as
 * complete.
 */
function fileWriter(fd: number, lost: Loss): LineWriter {
  // A disk that fills up can cut a line. The next line must not continue the cut one.
  let isMidLine = false;
  return {
    write(text) {
      let rest = Buffer.from(isMidLine ? `\n${text}` : text);
      try {
        while (rest.length > 0) {
          const written = writeSync(fd, rest);
          if (written > 0) isMidLine = rest[written - 1] !== 0x0a;
          rest = rest.subarray(written);
        }
        lost.written();
      } catch {
        lost.add(rest.toString());
      }
    },
  };
}

/** Writes to a pipe, a socket or a terminal. Node buffers the lines that the reader has not taken yet. */
function streamWriter(stream: NodeJS.WritableStream, lost: Loss): LineWriter {
  // The callback of `write` counts the loss. Without a listener, the event would end the process.
  stream.on('error', () => undefined);
  const buffered = (): number => (stream as { writableLength?: number }).writableLength ?? 0;
  return {
    write(text) {
      if (!stream.writable || buffered() > BUFFER_BYTES_MAX) {
        lost.add(text);
        return;
      }
      stream.write(text, (error) => {
        if (error) lost.add(text);
        // Waits until the buffer is half empty. Otherwise the line that reports the loss could be lost, too.
        else if (buffered() < BUFFER_BYTES_MAX / 2) lost.written();
      });
    },
  };
}

function countLines(text: string): number {
  let lines = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1;
  return lines;
}

/**
 * Returns the descriptor of a stream to a file or a device such as /dev/full, or null for a pipe, a socket or a terminal.
 * Asks no fstat: after one of a pipe, Node 20.20 does not resolve the links of packages that are imported later.
 */
function fileOf(stream: NodeJS.WritableStream): number | null {
  const { fd } = stream as { fd?: unknown };
  return typeof fd === 'number' && !(stream instanceof Socket) ? fd : null;
}
