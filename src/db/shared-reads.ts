/**
 * Equal reads that are asked for while one is under way share the next: each answer comes from a read that began after it was
 * asked for, so nothing that was committed before is missed, and a burst of equal questions costs two reads.
 */
export function shareReads<Key, T>(nameOf: (key: Key) => string, read: (key: Key) => Promise<T>): (key: Key) => Promise<T> {
  const running = new Map<string, { next: Promise<T> | null; done: Promise<unknown> }>();
  const start = (name: string, key: Key): Promise<T> => {
    const answer = read(key);
    const state: { next: Promise<T> | null; done: Promise<unknown> } = { next: null, done: answer.catch(() => undefined) };
    running.set(name, state);
    void state.done.then(() => {
      if (running.get(name) === state && state.next === null) running.delete(name);
    });
    return answer;
  };
  return (key) => {
    const name = nameOf(key);
    const present = running.get(name);
    if (!present) return start(name, key);
    present.next ??= present.done.then(() => start(name, key));
    return present.next;
  };
}
