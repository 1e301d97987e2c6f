#!/bin/sh
# Brings Temporal's two databases to the schema of this image. Safe to run at every start; the server waits for it.
set -eu
for name in temporal temporal_visibility; do
  folder=${name#temporal_}
  tool="temporal-sql-tool --plugin postgres12 --endpoint postgres --port 5432 --user temporal --database $name"
  $tool create-database || true
  $tool setup-schema --version 0.0 || true
  $tool update-schema --schema-dir "/etc/temporal/schema/postgresql/v12/$folder/versioned"
done
