/**
 * Describes a model for MediaPipe's tasks: `@mediapipe/selfie_segmentation` has its model without the metadata that
 * `@mediapipe/tasks-vision` reads, and Google publishes the model with metadata only outside of npm. TensorFlow Lite keeps
 * both as FlatBuffers, whose pointers lead forwards and are relative: a new root goes before the file, which stays as it is.
 */

/** A place in the file of the model. */
interface Old {
  old: number;
}

/** A part of a FlatBuffers file. A pointer to it leads to its body. */
interface Part {
  /** The bytes before the body. */
  head: Buffer;
  body: Buffer;
  pointers: { at: number; to: Part | Old }[];
}

/** @param fields by their number in the schema; a number is a scalar */
function table(...fields: (number | Part | Old | undefined)[]): Part {
  const head = Buffer.alloc(4 * Math.ceil((4 + 2 * fields.length) / 4));
  const present = [...fields.entries()].filter(([, value]) => value !== undefined);
  const body = Buffer.alloc(4 + 4 * present.length);
  const pointers: Part['pointers'] = [];
  head.writeUInt16LE(4 + 2 * fields.length, 0);
  head.writeUInt16LE(body.length, 2);
  body.writeInt32LE(head.length, 0);
  for (const [index, [id, value]] of present.entries()) {
    const at = 4 + 4 * index;
    head.writeUInt16LE(at, 4 + 2 * id);
    if (typeof value === 'number') body.writeUInt32LE(value, at);
    else if (value !== undefined) pointers.push({ at, to: value });
  }
  return { head, body, pointers };
}

function vector(...items: (Part | Old)[]): Part {
  const { body } = bytes(Buffer.alloc(4 * items.length), items.length);
  return { head: Buffer.alloc(0), body, pointers: items.map((to, index) => ({ at: 4 + 4 * index, to })) };
}

/** Bytes, or other scalars of which there are `count`. */
function bytes(content: Buffer, count = content.length): Part {
  const body = Buffer.alloc(4 + 4 * Math.ceil((content.length + 1) / 4));
  body.writeUInt32LE(count, 0);
  content.copy(body, 4);
  return { head: Buffer.alloc(0), body, pointers: [] };
}

const text = (value: string) => bytes(Buffer.from(value));
const float = (value: number) => bytes(Buffer.from(new Float32Array([value]).buffer), 1);

/** Writes the parts, each before the parts that it points to, and behind them the old file. */
function fileOf(root: Part, identifier: string, before: Buffer = Buffer.alloc(0)): Buffer {
  const starts = new Map<Part, number>();
  let end = 8;
  const place = (part: Part): void => {
    starts.set(part, end + part.head.length);
    end += part.head.length + part.body.length;
    for (const { to } of part.pointers) if (!('old' in to)) place(to);
  };
  place(root);
  const length = 16 * Math.ceil(end / 16);
  const file = Buffer.concat([Buffer.alloc(length), before]);
  file.writeUInt32LE(starts.get(root)!, 0);
  file.write(identifier, 4);
  for (const [{ head, body, pointers }, start] of starts) {
    head.copy(file, start - head.length);
    body.copy(file, start);
    for (const { at, to } of pointers)
      file.writeUInt32LE(('old' in to ? length + to.old : starts.get(to)!) - start - at, start + at);
  }
  return file;
}

/** @param model takes a picture whose colours go from 0 to 1, and has one output */
export function withMetadata(model: Buffer): Buffer {
  const root = model.readUInt32LE(0);
  const fields = root - model.readInt32LE(root);
  const fieldOf = (id: number): Old => {
    const at = root + model.readUInt16LE(fields + 4 + 2 * id);
    return { old: at + model.readUInt32LE(at) };
  };
  const [codes, graphs, description, buffers] = [1, 2, 3, 4].map(fieldOf) as [Old, Old, Old, Old];
  const oldBuffers = Array.from({ length: model.readUInt32LE(buffers.old) }, (_, index): Old => {
    const at = buffers.old + 4 + 4 * index;
    return { old: at + model.readUInt32LE(at) };
  });
  const rgb = table(2, table(1));
  const normalization = table(1, table(float(0), float(255)));
  const input = table(text('image'), undefined, undefined, rgb, vector(normalization));
  const graph = table(undefined, undefined, vector(input), vector(table(text('mask'))));
  const metadata = fileOf(table(undefined, undefined, undefined, vector(graph)), 'M001');
  const known = table(text('TFLITE_METADATA'), oldBuffers.length);
  const all = vector(...oldBuffers, table(bytes(metadata)));
  return fileOf(table(3, codes, graphs, description, all, undefined, vector(known)), 'TFL3', model);
}
