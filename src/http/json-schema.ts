import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

export type JsonSchema = { [keyword: string]: unknown };
type Io = 'input' | 'output';

/**
 * Turns zod schemas into JSON Schema 2020-12. The named ones (`.meta({ id })`) become components; one that is taken and
 * given in different forms (closed or open, with a default) is also there as `<id>Input`. Errors: two schemas with one id.
 */
export class SchemaWriter {
  /** Every component by its name. */
  readonly components: Readonly<Record<string, JsonSchema>>;
  private readonly inputs: ReadonlySet<string>;

  constructor(requests: readonly z.ZodType[], answers: readonly z.ZodType[]) {
    const given = definitions(answers, 'output');
    const taken = definitions(requests, 'input');
    this.inputs = new Set([...taken.keys()].filter((id) => given.has(id) && !isDeepStrictEqual(taken.get(id), given.get(id))));
    const named = [
      ...[...given].map(([id, schema]) => [id, this.settle(schema, 'output')] as const),
      ...[...taken].map(([id, schema]) => [this.nameOf(id, 'input'), this.settle(schema, 'input')] as const),
    ];
    this.components = Object.fromEntries(named.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** What an answer looks like. It may gain members at any time, so none is closed. */
  answer(schema: z.ZodType): JsonSchema {
    return this.settle(convert(schema, 'output').schema, 'output');
  }

  /** What a request must look like; unknown members of a body are refused. */
  request(schema: z.ZodType): JsonSchema {
    return this.settle(convert(schema, 'input').schema, 'input');
  }

  private nameOf(id: string, io: Io): string {
    return io === 'input' && this.inputs.has(id) ? `${id}Input` : id;
  }

  private settle(schema: JsonSchema, io: Io): JsonSchema {
    return mapNodes(schema, (node) => {
      const { $ref, additionalProperties, ...rest } = node;
      return {
        ...rest,
        ...(typeof $ref === 'string' ? { $ref: `#/components/schemas/${this.nameOf($ref.slice('#/$defs/'.length), io)}` } : {}),
        ...(additionalProperties === undefined || (io === 'output' && additionalProperties === false) ? {} : { additionalProperties }),
      };
    });
  }
}

function definitions(schemas: readonly z.ZodType[], io: Io): Map<string, JsonSchema> {
  const found = new Map<string, JsonSchema>();
  for (const schema of schemas) {
    for (const [id, definition] of Object.entries(convert(schema, io).definitions)) {
      if (found.has(id) && !isDeepStrictEqual(found.get(id), definition)) throw new Error(`Two different schemas have the id ${id}.`);
      found.set(id, definition);
    }
  }
  return found;
}

function convert(schema: z.ZodType, io: Io): { schema: JsonSchema; definitions: Record<string, JsonSchema> } {
  const { $schema: _, $defs, ...converted } = z.toJSONSchema(schema, { io, override: readable });
  return { schema: converted, definitions: Object.fromEntries(Object.entries($defs ?? {}).map(([id, definition]) => [id, { ...definition }])) };
}

/** Numbers and switches of a query arrive as text; a client writes a number. Zod's pattern for a time says no more than its format. */
function readable({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodTypes; jsonSchema: JsonSchema }): void {
  if (zodSchema instanceof z.ZodPipe && zodSchema.out instanceof z.ZodNumber && jsonSchema['type'] === 'string') {
    const { $schema: _, ...number } = z.toJSONSchema(zodSchema.out);
    Object.assign(jsonSchema, number);
    delete jsonSchema['pattern'];
  }
  if (isDeepStrictEqual(jsonSchema['enum'], ['true', 'false'])) {
    jsonSchema['type'] = 'boolean';
    delete jsonSchema['enum'];
  }
  if (jsonSchema['format'] !== undefined) delete jsonSchema['pattern'];
}

/** Rebuilds a schema from its leaves up; `properties` and other maps of schemas pass unchanged but for what they hold. */
function mapNodes(node: JsonSchema, change: (node: JsonSchema) => JsonSchema): JsonSchema {
  const mapped = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, key === 'properties' ? mapMembers(value, change) : mapValue(value, change)]));
  return change(mapped);
}

function mapMembers(members: unknown, change: (node: JsonSchema) => JsonSchema): unknown {
  return isNode(members) ? Object.fromEntries(Object.entries(members).map(([name, member]) => [name, mapValue(member, change)])) : members;
}

function mapValue(value: unknown, change: (node: JsonSchema) => JsonSchema): unknown {
  if (Array.isArray(value)) return value.map((item) => mapValue(item, change));
  return isNode(value) ? mapNodes(value, change) : value;
}

function isNode(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
