#include "queue.h"

#include <assert.h>
#include <stdlib.h>

bool wire_queue_init(struct wire_queue *queue, struct wire_speed speed, size_t slots,
                     size_t largest)
{
    *queue = (struct wire_queue){.speed = speed, .slots = slots, .largest = largest};
    queue->packets = calloc(slots, sizeof *queue->packets);
    queue->data = calloc(slots, largest);
    if (queue->packets == NULL || queue->data == NULL) {
        wire_queue_free(queue);
        return false;
    }
    for (size_t i = 0; i < slots; i++)
        queue->packets[i].data = queue->data + i * largest;
    return true;
}

void wire_queue_free(struct wire_queue *queue)
{
    free(queue->packets);
    free(queue->data);
    *queue = (struct wire_queue){0};
}

static struct wire_packet *after_the_last(struct wire_queue *queue)
{
    return &queue->packets[(queue->first + queue->count) % queue->slots];
}

char *wire_queue_room(struct wire_queue *queue)
{
    return queue->count == queue->slots ? NULL : after_the_last(queue)->data;
}

// One packet is sent after the other: a packet that comes while another is being sent waits.
void wire_queue_send(struct wire_queue *queue, size_t length, uint64_t now)
{
    assert(queue->count < queue->slots && length <= queue->largest);
    uint64_t begins = queue->idle_at > now ? queue->idle_at : now;
    uint64_t takes =
        queue->speed.bits_per_us == 0 ? 0 : (uint64_t)length * 8 * 1000 / queue->speed.bits_per_us;
    queue->idle_at = begins + takes;
    struct wire_packet *packet = after_the_last(queue);
    packet->length = length;
    packet->arrives = queue->idle_at + queue->speed.delay_ns;
    queue->count++;
}

const struct wire_packet *wire_queue_arrived(const struct wire_queue *queue, uint64_t now)
{
    return wire_queue_next(queue) <= now ? &queue->packets[queue->first] : NULL;
}

void wire_queue_take(struct wire_queue *queue)
{
    assert(queue->count > 0);
    queue->first = (queue->first + 1) % queue->slots;
    queue->count--;
}

uint64_t wire_queue_next(const struct wire_queue *queue)
{
    return queue->count == 0 ? WIRE_NEVER : queue->packets[queue->first].arrives;
}
