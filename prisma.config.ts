import { defineConfig } from 'prisma/config';

/** The client is generated from every *.prisma file of the folder; migrations are applied by src/db/migrate.ts, never by this CLI. */
export default defineConfig({ schema: 'prisma' });
