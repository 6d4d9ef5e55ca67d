#!/bin/sh
# prune.sh <app> <target>: one app with nothing but what it runs on, out of a built tree: its compiled files, its
# production dependencies, and the migrations. The Dockerfile runs it; so does a test, on a machine without Docker.
set -eu

app=$1
target=$2

# `--legacy`: workspace packages are copied as they were built.
pnpm --filter "@callplane/$app" --prod --legacy deploy "$target"

# Prisma's client carries its compiler of queries for every database it knows; ours is PostgreSQL.
find "$target/node_modules/.pnpm" -path '*/@prisma/client/runtime/*' -type f \
  \( -name '*.cockroachdb.*' -o -name '*.mysql.*' -o -name '*.sqlite.*' -o -name '*.sqlserver.*' \) -delete
# Sources maps and type declarations serve people, not processes.
find "$target" -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' -o -name '*.map' \) -delete

# Where `rtc db migrate` looks for them (PRISMA_DIR), and the health check of every container.
cp -R prisma "$target/prisma"
cp infra/image/health-check.mjs "$target/health-check.mjs"
