<?php
// Receives webhooks with PHP 8.1 or later: php -S 127.0.0.1:3000 receiver.php

declare(strict_types=1);

/** The request is not a delivery of Callplane. The code is the status of the answer to it. */
final class Unverified extends RuntimeException
{
}

/**
 * @param array<string, string> $headers by lower-case name. PHP joins repeated headers with a comma, which no header of
 *   a delivery may contain twice.
 * @param array<string, string> $secrets by version; the prefix whsec_ belongs to the secret
 * @return array<string, mixed> the event
 */
function verify(array $headers, string $body, array $secrets, ?int $now = null): array
{
    $header = static function (string $name, string $form) use ($headers): array {
        if (!isset($headers[$name]) || preg_match($form, $headers[$name], $match) !== 1) {
            throw new Unverified("$name is missing, malformed or repeated", 400);
        }
        return $match;
    };
    [, $timestamp, $signature] = $header('x-service-signature', '/\At=(0|[1-9]\d{0,11}),v1=([0-9a-f]{64})\z/');
    [$deliveryId] = $header('x-service-delivery-id', '/\A[A-Za-z0-9_-]{1,128}\z/');
    [$replayCount] = $header('x-service-replay-count', '/\A(?:0|[1-9]\d{0,8})\z/');
    [$version] = $header('x-service-signing-key-version', '/\A[1-9]\d{0,8}\z/');
    if (abs(($now ?? time()) - (int) $timestamp) > 300) {
        throw new Unverified('the timestamp is more than 300 seconds from now', 400);
    }
    if (!isset($secrets[$version])) {
        // The delivery is retried, and succeeds once the secret is deployed.
        throw new Unverified("there is no secret of version $version", 503);
    }
    $expected = hash_hmac('sha256', "$timestamp.$deliveryId.$replayCount.$body", $secrets[$version]);
    if (!hash_equals($expected, $signature)) {
        throw new Unverified('the signature does not match', 400);
    }
    $event = json_decode($body, false);
    if (!$event instanceof stdClass) {
        throw new Unverified('the body is not a JSON object', 400);
    }
    return json_decode($body, true);
}

/** @param array<string, mixed> $event */
function process(array $event): void
{
    // Store $event['id'] in the transaction of your work, so that each event is processed once.
    file_put_contents('php://stdout', "processing {$event['type']} {$event['id']}\n");
}

if (PHP_SAPI === 'cli-server') {
    $headers = array_change_key_case(getallheaders(), CASE_LOWER);
    $secrets = json_decode((string) getenv('WEBHOOK_SECRETS'), true) ?? [];
    try {
        process(verify($headers, (string) file_get_contents('php://input'), $secrets));
        http_response_code(204);
    } catch (Unverified $error) {
        error_log($error->getMessage());
        http_response_code($error->getCode());
    }
}
