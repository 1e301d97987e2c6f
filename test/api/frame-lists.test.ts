import { z } from 'zod';
import { Cursors } from '../../src/core/cursor';
import { pageAnswer, pageQuery, readPage } from '../../src/core/page';
import { operationsOf } from '../../src/http/operation';
import { withFrame, type FrameTestDeps } from '../support/frame';

const { self } = operationsOf<FrameTestDeps>();
type Shelf = { at: number; id: string };
let shelves: Shelf[] = [];

const listShelves = (path: string, list: string) => self({
  id: `list${list}`, method: 'get', path, summary: '', tag: '', query: z.object({ ...pageQuery, colour: z.string().optional() }),
  answer: z.object({ shelves: z.array(z.object({ at: z.number(), id: z.string() })), ...pageAnswer }),
  handle: async ({ deps, query }) => {
    const { items, ...page } = await readPage(deps.cursors, { list, colour: query.colour ?? null }, query, {
      limitDefault: 25, keyOf: (row: Shelf) => [row.at, row.id],
      fetch: async (after, limit) => shelves.filter(({ at, id }) => after === null || at < Number(after[0]) || (at === after[0] && id < String(after[1]))).slice(0, limit),
    });
    return { shelves: items, ...page };
  },
});
const frame = withFrame(() => [listShelves('/api/shelves', 'Shelves'), listShelves('/api/boxes', 'Boxes')]);

beforeEach(() => {
  shelves = Array.from({ length: 60 }, (_, index) => ({ at: 1_000 - Math.floor(index / 3), id: `s${String(100 - index)}` }));
});

const list = (query: string, path = '/v1/api/shelves') => frame.ask('GET', `${path}?${query}`, { headers: { cookie: 'as=ann' } });
const refused = { status: 400, body: { ok: false, code: 'invalid_cursor' } };

test('without a limit a page is of the default size and leads on', async () => {
  const { body } = await list('');
  expect(body).toMatchObject({ ok: true, hasMore: true, nextCursor: expect.stringMatching(/^[\w-]+$/) });
  expect(body.shelves).toHaveLength(25);
});

test('all pages together are the list, once each, also while rows are added in front', async () => {
  const before = [...shelves];
  const seen: Shelf[] = [];
  let cursor: string | null = '';
  for (let page = 0; cursor !== null; page++) {
    const { body }: { body: { shelves: Shelf[]; nextCursor: string | null; hasMore: boolean } } = await list(`limit=7${cursor ? `&cursor=${cursor}` : ''}`);
    seen.push(...body.shelves);
    expect(body.hasMore).toBe(body.nextCursor !== null);
    cursor = body.nextCursor;
    shelves.unshift({ at: 2_000 + page, id: 'new' });
  }
  expect(seen).toEqual(before);
});

test('a last page that is full does not lead on', async () => {
  shelves = shelves.slice(0, 10);
  expect((await list('limit=10')).body).toMatchObject({ hasMore: false, nextCursor: null });
});

test('a cursor with any byte changed, cut or lengthened is 400 invalid_cursor', async () => {
  const cursor: string = (await list('limit=5')).body.nextCursor;
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  for (const index of Array.from({ length: cursor.length }, (_, i) => i)) {
    const other = alphabet[(alphabet.indexOf(cursor.charAt(index)) + 1) % 64];
    expect(await list(`limit=5&cursor=${cursor.slice(0, index)}${other}${cursor.slice(index + 1)}`)).toMatchObject(refused);
  }
  for (const changed of [cursor.slice(1), cursor.slice(0, -1), `${cursor}A`, 'x', 'nonsense', '%2B%2F', `${cursor}=`]) expect(await list(`cursor=${changed}`)).toMatchObject(refused);
});

test('a cursor fits only the list, the filter and the installation it was made for; another limit is fine', async () => {
  const cursor: string = (await list('limit=5&colour=red')).body.nextCursor;
  expect(await list(`cursor=${cursor}`)).toMatchObject(refused);
  expect(await list(`cursor=${cursor}&colour=blue`)).toMatchObject(refused);
  expect(await list(`cursor=${cursor}&colour=red`, '/v1/api/boxes')).toMatchObject(refused);
  expect(await list(`cursor=${new Cursors('another secret').encode({ list: 'Shelves', colour: 'red' }, [1, 's'])}&colour=red`)).toMatchObject(refused);
  expect((await list(`cursor=${cursor}&colour=red&limit=9`)).body.shelves).toEqual(shelves.slice(5, 14));
});
