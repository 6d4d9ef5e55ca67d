#!/bin/sh
# Builds every app from the sources in the current directory with the pnpm version that package.json pins. The
# Dockerfile runs it, and a test runs it on machines without Docker.
set -eu

pnpm install --frozen-lockfile --prefer-offline
pnpm turbo run build --filter='./apps/*...'
