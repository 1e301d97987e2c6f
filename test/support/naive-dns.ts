import type { RRset } from '../../src/dns/rules/rrset';

export type NaiveAnswer = { rcode: number; aa: boolean; answer: string[]; authority: string[]; additional: string[] };

/**
 * What a zone answers, written from RFC 1034 §4.3.2 and RFC 4592 over a plain list, without nodes, caches or wire names: slow,
 * and too simple to share a mistake with the server.
 */
export function naiveAnswer(sets: readonly RRset[], apex: string, question: string, type: string): NaiveAnswer {
  const answer: string[] = [];
  let name = question;
  for (let hops = 0; hops < 8; hops++) {
    const cut = ancestors(name, apex).reverse().find((above) => above !== apex && of(sets, above, 'NS').length > 0 && !(type === 'DS' && above === name));
    if (cut !== undefined) {
      const hosts = of(sets, cut, 'NS').flatMap(({ values }) => values);
      const additional = hosts.flatMap((host) => [...of(sets, host, 'A'), ...of(sets, host, 'AAAA')]);
      return done({ rcode: 0, aa: answer.length > 0, answer, authority: texts(of(sets, cut, 'NS')), additional: texts(additional) });
    }
    let owner = name;
    if (!exists(sets, name)) {
      const encloser = ancestors(name, apex).find((above) => exists(sets, above)) ?? apex;
      owner = `*.${encloser}`;
      if (!exists(sets, owner)) return done({ rcode: 3, aa: true, answer, authority: texts(of(sets, apex, 'SOA')), additional: [] });
    }
    const wanted = of(sets, owner, type);
    if (wanted.length > 0) return done({ rcode: 0, aa: true, answer: [...answer, ...texts(wanted, name)], authority: [], additional: [] });
    const [alias] = of(sets, owner, 'CNAME');
    const [target] = alias?.values ?? [];
    if (!alias || target === undefined) return done({ rcode: 0, aa: true, answer, authority: texts(of(sets, apex, 'SOA')), additional: [] });
    answer.push(...texts([alias], name));
    if (target !== apex && !target.endsWith(`.${apex}`)) break;
    name = target;
  }
  return done({ rcode: 0, aa: true, answer, authority: [], additional: [] });
}

/** The name and those above it, nearest first, down to the apex. */
function ancestors(name: string, apex: string): string[] {
  const names = [name];
  for (let rest = name; rest !== apex; names.push(rest)) rest = rest.slice(rest.indexOf('.') + 1);
  return names;
}

function exists(sets: readonly RRset[], name: string): boolean {
  return sets.some((set) => set.name === name || set.name.endsWith(`.${name}`));
}

function of(sets: readonly RRset[], name: string, type: string): RRset[] {
  return sets.filter((set) => set.name === name && set.type === type);
}

function texts(sets: readonly RRset[], owner?: string): string[] {
  return sets.flatMap((set) => set.values.map((value) => `${owner ?? set.name} ${set.type} ${value}`));
}

function done(given: NaiveAnswer): NaiveAnswer {
  return { ...given, answer: given.answer.sort(), authority: given.authority.sort(), additional: given.additional.sort() };
}
