#!/bin/sh
# prune.sh <app> <target>: copies one app out of a built tree with only its files for run time: compiled files,
# production dependencies and migrations. The Dockerfile runs it, and a test runs it on machines without Docker.
set -eu

app=$1
target=$2

# `--legacy` copies the workspace packages as they were built.
pnpm --filter "@callplane/$app" --prod --legacy deploy "$target"

# Prisma's client contains a query compiler for every database that it supports. Only PostgreSQL's is used.
find "$target/node_modules/.pnpm" -path '*/@prisma/client/runtime/*' -type f \
  \( -name '*.cockroachdb.*' -o -name '*.mysql.*' -o -name '*.sqlite.*' -o -name '*.sqlserver.*' \) -delete
# No process reads type declarations, and stack traces need the source maps of this project's code alone.
find "$target" -type f \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete
find "$target/node_modules" -type f -name '*.map' -not -path '*/@callplane/*' -delete

# The migrations for `rtc db migrate` (PRISMA_DIR), and the health check of every container.
cp -R prisma "$target/prisma"
cp infra/image/health-check.mjs "$target/health-check.mjs"
if [ "$app" = api ]; then
  # The document that the API serves at /openapi.json, its reference, and the site of the documents.
  [ -d docs/dist ] || pnpm --filter @callplane/docs run site
  mkdir -p "$target/docs"
  cp -R docs/openapi.json docs/reference docs/dist "$target/docs"
  # The built console, which the API serves at /console.
  if [ -d apps/console/dist ]; then cp -R apps/console/dist "$target/console-pages"; fi
fi
