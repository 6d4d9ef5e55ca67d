/** A pause that `end` cuts short. */
export function pause(milliseconds: number): { over: Promise<void>; end: () => void } {
  let end = (): void => undefined;
  const over = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    end = () => {
      clearTimeout(timer);
      resolve();
    };
  });
  return { over, end };
}
