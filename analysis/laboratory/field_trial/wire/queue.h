// One direction of a cable: packets that are under way, and when each of them arrives.
//
// Nothing here reads a clock or a device. The caller says what time it is, in nanoseconds.
#ifndef WIRE_QUEUE_H
#define WIRE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_NEVER UINT64_MAX

// How long a packet takes.
struct wire_speed {
    uint64_t delay_ns;    // from the end of its sending until it arrives
    uint64_t bits_per_us; // how fast it is sent, that is, Mbit/s; 0: at once
};

struct wire_packet {
    uint64_t arrives; // when
    size_t length;    // of its data, in bytes
    char *data;       // has room for the queue's largest packet
};

struct wire_queue {
    struct wire_speed speed;
    size_t slots;   // the most packets under way
    size_t largest; // packet, in bytes
    struct wire_packet *packets;
    char *data;
    size_t first;     // the oldest packet
    size_t count;     // of packets under way
    uint64_t idle_at; // when the sender has sent all that it was given
};

// Returns false if there is no memory.
bool wire_queue_init(struct wire_queue *queue, struct wire_speed speed, size_t slots,
                     size_t largest);
void wire_queue_free(struct wire_queue *queue);

// Returns the room for the next packet's data, or NULL while all slots are taken. What is written
// there is under way only after wire_queue_send.
char *wire_queue_room(struct wire_queue *queue);

// Sends what was written into the room: one packet of so many bytes, which comes at the time `now`.
void wire_queue_send(struct wire_queue *queue, size_t length, uint64_t now);

// Returns the oldest packet if it has arrived by now, else NULL.
const struct wire_packet *wire_queue_arrived(const struct wire_queue *queue, uint64_t now);

// Takes the oldest packet off.
void wire_queue_take(struct wire_queue *queue);

// Returns when the oldest packet arrives; WIRE_NEVER if there is none.
uint64_t wire_queue_next(const struct wire_queue *queue);

#endif
