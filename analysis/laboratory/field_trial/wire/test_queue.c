// The cable's queue: when packets arrive.
#include "queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000u

static struct wire_queue a_queue(uint64_t delay_ms, uint64_t mbit, size_t slots)
{
    struct wire_queue queue;
    struct wire_speed speed = {.delay_ns = delay_ms * MS, .bits_per_us = mbit};
    assert_true(wire_queue_init(&queue, speed, slots, 1000));
    return queue;
}

static void send(struct wire_queue *queue, const char *text, size_t length, uint64_t now)
{
    char *room = wire_queue_room(queue);
    assert_non_null(room);
    strcpy(room, text);
    wire_queue_send(queue, length, now);
}

static void a_packet_arrives_after_the_delay_and_no_earlier(void **state)
{
    (void)state;
    struct wire_queue queue = a_queue(10, 0, 4);
    assert_true(wire_queue_next(&queue) == WIRE_NEVER);
    assert_null(wire_queue_arrived(&queue, 1000 * MS));
    send(&queue, "hello", 6, 5 * MS);
    assert_int_equal(wire_queue_next(&queue), 15 * MS);
    assert_null(wire_queue_arrived(&queue, 15 * MS - 1));
    const struct wire_packet *packet = wire_queue_arrived(&queue, 15 * MS);
    assert_non_null(packet);
    assert_int_equal(packet->length, 6);
    assert_string_equal(packet->data, "hello");
    wire_queue_take(&queue);
    assert_true(wire_queue_next(&queue) == WIRE_NEVER);
    wire_queue_free(&queue);
}

static void packets_are_sent_one_after_the_other_at_the_rate(void **state)
{
    (void)state;
    // 1,000 bytes take 8 ms at 1 Mbit/s.
    struct wire_queue queue = a_queue(10, 1, 4);
    send(&queue, "a", 1000, 0);
    send(&queue, "b", 500, 1 * MS);
    assert_int_equal(wire_queue_next(&queue), 18 * MS);
    wire_queue_take(&queue);
    assert_int_equal(wire_queue_next(&queue), 22 * MS);
    wire_queue_take(&queue);
    // The sender has rested since: this one does not wait.
    send(&queue, "c", 1000, 100 * MS);
    assert_int_equal(wire_queue_next(&queue), 118 * MS);
    wire_queue_free(&queue);
}

static void a_full_cable_takes_no_more_and_loses_no_packet(void **state)
{
    (void)state;
    struct wire_queue queue = a_queue(1, 0, 2);
    // More rounds than slots: the places are used again.
    for (uint64_t round = 0; round < 5; round++) {
        uint64_t start = round * 10 * MS;
        send(&queue, "first", 6, start);
        send(&queue, "second", 7, start);
        assert_null(wire_queue_room(&queue));
        assert_string_equal(wire_queue_arrived(&queue, start + MS)->data, "first");
        wire_queue_take(&queue);
        assert_non_null(wire_queue_room(&queue));
        assert_string_equal(wire_queue_arrived(&queue, start + MS)->data, "second");
        wire_queue_take(&queue);
        assert_null(wire_queue_arrived(&queue, WIRE_NEVER - 1));
    }
    wire_queue_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_arrives_after_the_delay_and_no_earlier),
        cmocka_unit_test(packets_are_sent_one_after_the_other_at_the_rate),
        cmocka_unit_test(a_full_cable_takes_no_more_and_loses_no_packet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
