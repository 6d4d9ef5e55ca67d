/** Finds circles of imports between files, without I/O. */

/** The files that each file imports. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

const STATIC_IMPORT = /^(?:import|export)\s+(?!type\b)(?:[^'";]*?\sfrom\s+)?'(\.{1,2}\/[^']+)';/gm;

/**
 * The relative modules that a TypeScript file loads when it is loaded. Leaves out imports of types, which the compiler
 * removes, and `import()`, which runs later.
 */
export function importsOf(text: string): string[] {
  return [...text.matchAll(STATIC_IMPORT)].map(([, specifier = '']) => specifier);
}

/**
 * The groups of files that import each other, directly or through other files of the group. Each is sorted by name.
 * Tarjan's algorithm for strongly connected components.
 */
export function findCircles(graph: ImportGraph): string[][] {
  const circles: string[][] = [];
  const order = new Map<string, number>();
  /** The earliest file on the stack that a file reaches. */
  const reaches = new Map<string, number>();
  const stack: string[] = [];
  const visit = (file: string): number => {
    const position = order.size;
    order.set(file, position);
    stack.push(file);
    let earliest = position;
    for (const imported of graph.get(file) ?? []) {
      if (!order.has(imported)) earliest = Math.min(earliest, visit(imported));
      else if (stack.includes(imported))
        earliest = Math.min(earliest, reaches.get(imported) ?? order.get(imported) ?? 0);
    }
    reaches.set(file, earliest);
    if (earliest === position) {
      const group = stack.splice(stack.indexOf(file)).sort();
      if (group.length > 1 || graph.get(file)?.includes(file)) circles.push(group);
    }
    return earliest;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return circles;
}
