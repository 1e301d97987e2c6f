import type { Node } from './tree';

/** What a customer's expression may cost: single characters once repeats are written out, and repeats without end among them. Measured, docs/decisions/0225. */
const charactersMax = 512;
const endlessMax = 20;
/** V8's linear engine counts repeats through their nesting; only those of one atom are split. */
const nestedMax = 16;

/** `product`: of the counts through the nesting. `nested`: the same where there are two and more. */
interface Cost { readonly characters: number; readonly endless: number; readonly product: number; readonly nested: number }

/** Why an expression is too dear to run on every request; null when it is not. */
export function costFault(tree: Node): string | null {
  const { characters, endless, nested } = costOf(tree);
  if (nested > nestedMax) return `its nested repeats multiply to more than ${nestedMax}`;
  if (characters > charactersMax) return `written out it has more than ${charactersMax} characters`;
  return endless > endlessMax ? `more than ${endlessMax} of its repeats have no end` : null;
}

function costOf(node: Node): Cost {
  switch (node.kind) {
    case 'set': return { ...nothing, characters: 1 };
    case 'assert': case 'reference': return nothing;
    case 'group': case 'look': return costOf(node.of);
    case 'sequence': return together(node.parts.map(costOf));
    case 'choice': return together(node.options.map(costOf));
    case 'repeat': {
      const inner = costOf(node.of);
      const isEndless = !Number.isFinite(node.max);
      const times = Math.max(1, isEndless ? node.min : node.max);
      const product = inner.product * times;
      return { characters: inner.characters * times, endless: inner.endless * times + (isEndless ? 1 : 0), product, nested: inner.product > 1 && times > 1 ? product : inner.nested };
    }
  }
}

const nothing: Cost = { characters: 0, endless: 0, product: 1, nested: 1 };

function together(costs: readonly Cost[]): Cost {
  return costs.reduce((sum, cost) => ({
    characters: sum.characters + cost.characters, endless: sum.endless + cost.endless, product: Math.max(sum.product, cost.product), nested: Math.max(sum.nested, cost.nested),
  }), nothing);
}
