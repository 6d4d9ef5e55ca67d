import type { Call } from '@callplane/client-js';

/** Puts the files that others share into a list. */
export function receiveFiles(call: Call, list: HTMLElement) {
  return call.handleStream('files', async (stream) => {
    const link = document.createElement('a');
    stream.onProgress = ({ bytes, size }) => {
      link.textContent = `${stream.name} of ${stream.participant?.name}: ${bytes} of ${size} bytes`;
    };
    list.append(link);
    link.href = URL.createObjectURL(await stream.blob());
    link.download = stream.name ?? 'file';
  });
}

/** Sends a file to everyone. */
export function shareFile(call: Call, file: File, bar: HTMLProgressElement, signal: AbortSignal) {
  return call.sendStream('files', file, {
    signal,
    onProgress: ({ bytes, size }) => {
      bar.value = bytes / (size || 1);
    },
  });
}

/** Sends text while it is written, to one participant. */
export function writeTo(call: Call, participantId: string): WritableStreamDefaultWriter<string> {
  const { readable, writable } = new TransformStream<string, string>();
  call.sendStream('draft', readable, { to: [participantId] }).catch((error: unknown) => writable.abort(error));
  return writable.getWriter();
}
